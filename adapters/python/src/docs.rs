//! Texts that the docstrings of several functions share, so that each docstring is complete.
//!
//! The texts have no leading space, because Python shows them as they are.

/// Expands to one of the texts, as a constant expression. The first arms are groups of texts that
/// follow each other in several docstrings.
macro_rules! docs {
    ("scatter options") => {
        concat!(
            docs!("reduction"),
            "\n",
            docs!("write bounds"),
            "\n",
            docs!("duplicates"),
            "\n",
            docs!("negative"),
        )
    };
    ("end of scatter") => {
        concat!(
            docs!("out data"),
            "\n",
            docs!("threads"),
            "\n\n",
            docs!("returns"),
            "\n\n",
            docs!("write errors"),
        )
    };
    ("end of gather") => {
        concat!(
            docs!("read bounds"),
            "\n",
            docs!("negative"),
            "\n",
            docs!("out"),
            "\n",
            docs!("threads"),
            "\n\n",
            docs!("returns"),
            "\n\n",
            docs!("read errors"),
        )
    };
    ("end of scatter plan") => {
        concat!(
            docs!("scatter options"),
            "\n",
            docs!("threads"),
            "\n\n",
            docs!("scatter plan"),
            "\n\n",
            docs!("plan errors"),
        )
    };
    ("end of gather plan") => {
        concat!(
            docs!("read bounds"),
            "\n",
            docs!("negative"),
            "\n",
            docs!("threads"),
            "\n\n",
            docs!("gather plan"),
            "\n\n",
            docs!("gather plan errors"),
        )
    };
    ("numpy function") => {
        concat!(
            docs!("numpy arguments"),
            "\n",
            docs!("threads"),
            "\n\n",
            docs!("numpy errors"),
            "\n\n",
            docs!("numpy order"),
        )
    };
    ("reduction") => {
        r#"    reduction: how an update is combined with the existing value. ``"none"`` replaces the
        existing value by the update. The reductions are ``"add"``, ``"sub"``, ``"mul"``,
        ``"min"``, ``"max"`` and ``"mean"``. Names of torch, JAX and OpenVINO, such as
        ``"sum"`` and ``"amax"``, are accepted too.
    include_self: whether the existing value takes part in a reduction.
    accumulate: how a reduction of 16-bit floats is rounded. ``"native"`` rounds the value
        of a destination after every update. ``"wide"`` computes the value in float32, and
        rounds it once, after the last update."#
    };
    ("write bounds") => {
        r#"    bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
        ``"skip"`` (or ``"drop"``) drops the update of the index, and ``"clamp"`` (or
        ``"clip"``) replaces the index by the nearest valid index."#
    };
    ("read bounds") => {
        r#"    bounds: treatment of an index out of bounds: ``"error"`` raises an IndexError,
        ``"skip"`` (or ``"drop"``) fills the slice of the result with zeros, and ``"clamp"``
        (or ``"clip"``) replaces the index by the nearest valid index."#
    };
    ("mode") => {
        r#"    mode: ``"linear"`` requires that the updates of a sequence fit between its position
        and the end of the axis. ``"circular"`` takes positions modulo the length of the axis."#
    };
    ("cache bounds") => {
        r#"    bounds: treatment of a negative position: ``"error"`` raises an IndexError, and ``"skip"``
        drops the updates of the sequence. In linear mode, a position at which the updates do
        not fit raises an IndexError, whatever `bounds` is."#
    };
    ("write slots") => {
        r#"    bounds: treatment of a slot that does not exist: ``"skip negative"`` skips negative slots
        and raises an IndexError for a slot that is too large. ``"error"`` raises an IndexError
        for both, ``"skip"`` skips both, and ``"clamp"`` replaces the slot by the nearest valid
        slot. A negative slot never counts from the end."#
    };
    ("read slots") => {
        r#"    bounds: treatment of a slot that does not exist: ``"skip negative"`` fills the rows of
        negative slots with zeros, and raises an IndexError for a slot that is too large.
        ``"error"`` raises an IndexError for both, ``"skip"`` fills the rows of both with zeros,
        and ``"clamp"`` replaces the slot by the nearest valid slot. A negative slot never
        counts from the end."#
    };
    ("duplicates") => {
        r#"    duplicates: ``"allow"``, or ``"reject"`` to raise a ValueError if two updates have the
        same destination."#
    };
    ("negative") => {
        r#"    negative_indices: whether a negative index counts from the end of its axis. If False, a
        negative index is out of bounds."#
    };
    ("axis") => {
        r#"    axis: the indexed axis. A negative axis counts from the end: -1 is the last axis."#
    };
    ("out data") => {
        r#"    out: array to write the result to. ``out=data`` updates `data` in place."#
    };
    ("out") => {
        r#"    out: array to write the result to."#
    };
    ("threads") => {
        r#"    threads: largest number of threads that the call uses: 1 is the calling thread alone,
        None is all threads of the thread pool."#
    };
    ("conversion") => {
        r#"    format: what the elements of `data` are: ``"float32"``, ``"float16"``, ``"bfloat16"``,
        ``"float8_e4m3fn"``, ``"float8_e5m2"``, ``"int8"``, ``"uint8"``, ``"int4"`` or
        ``"uint4"``. None is the element type of `data`, but uint8 needs a format. 8-bit floats
        may be stored as uint8 or int8. 4-bit integers are stored as uint8 or int8, two in an
        element, the first of them in the low 4 bits. The last axis of `updates` is then twice
        as long as the last axis of `data`.
    rounding: ``"nearest even"`` rounds as torch. A value that is too large becomes infinity, or
        NaN in float8_e4m3fn. ``"saturate"`` clamps to the largest finite value, as ONNX, and as
        torch 2.12 and newer for float8_e4m3fn. ``"saturate nan"`` also replaces NaN by this
        value, as vLLM. ``"truncate"`` rounds toward zero, and otherwise as ``"saturate nan"``.
        Integers are clamped with every rounding.
    scaling: ``"divide"`` divides a value by its scale. ``"reciprocal"`` multiplies it by
        ``1 / scale``, as vLLM.
    scale: float32 numbers of a shape that broadcasts to the shape of `updates`: a number for the
        whole cache, shape ``(tokens, 1, 1)`` for one number for each row, or ``(heads, dim)``
        for each channel.
    zero_point: int32 numbers of a shape that broadcasts to the shape of `updates`. They are
        added to integers after the rounding."#
    };
    ("shape") => {
        r#"    data: a tuple with the shape of the arrays of the plan's calls, or an integer for one axis,
        if these arrays are contiguous. Otherwise an array with their shape and strides."#
    };
    ("planned indices") => {
        r#"        This function reads and checks the indices. The calls of the plan do not read
        `indices` again."#
    };
    ("planned slots") => {
        r#"    slots: integers of any integer type and any shape. This function reads and checks the
        slots. The calls of the plan do not read `slots` again."#
    };
    ("scatter plan") => {
        r#"Returns:
    A `ScatterPlan`. Call it with `data`, `updates` and `out`. If several updates have the
    same destination, a call applies them in the row-major order of `indices`."#
    };
    ("gather plan") => {
        r#"Returns:
    A `GatherPlan`. Call it with `data` and `out`."#
    };
    ("returns") => {
        r#"Returns:
    `out` if it was passed. Otherwise a new array of the library of `data`."#
    };
    ("write errors") => {
        r#"Raises:
    IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
        empty with ``bounds="clamp"``.
    TypeError: the element types of `data`, `updates` and `out` differ, the element type
        does not have the reduction, indices are not integers, or an argument is a masked array.
    ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, `out`
        shares memory with an argument in another way than ``out=data``, or two updates have
        the same destination with ``duplicates="reject"``.
    MemoryError: an allocation failed.

After each of the errors listed under "Raises", `out` is unchanged."#
    };
    ("cache errors") => {
        r#"Raises:
    IndexError: a position is negative with ``bounds="error"``, or the updates do not fit at a
        position in linear mode.
    TypeError: the element types of `data`, `updates` and `out` differ, positions are not
        integers, or an argument is a masked array.
    ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
        shares memory with an argument in another way than ``out=data``.
    MemoryError: an allocation failed.

After each of the errors listed under "Raises", `out` is unchanged."#
    };
    ("read errors") => {
        r#"Raises:
    IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
        empty with ``bounds="clamp"``.
    TypeError: `out` has another element type than `data`, indices are not integers, or an
        argument is a masked array.
    ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
        shares memory with `data` or `indices`.
    MemoryError: an allocation failed.

After each of the errors listed under "Raises", `out` is unchanged."#
    };
    ("read slot errors") => {
        r#"Raises:
    IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or the cache
        has no slots with ``bounds="clamp"``.
    TypeError: `out` has another element type than `data`, slots are not integers, or an
        argument is a masked array.
    ValueError: a shape or an option is wrong, `out` is read-only or may be read-only, or `out`
        shares memory with `data` or `slots`.
    MemoryError: an allocation failed.

After each of the errors listed under "Raises", `out` is unchanged."#
    };
    ("plan errors") => {
        r#"Raises:
    IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
        empty with ``bounds="clamp"``.
    TypeError: indices are not integers, or `data` is neither an array nor a shape.
    ValueError: a shape or an option is wrong, or two updates have the same destination with
        ``duplicates="reject"``.
    MemoryError: an allocation failed."#
    };
    ("gather plan errors") => {
        r#"Raises:
    IndexError: an index is out of bounds with ``bounds="error"``, or an indexed axis is
        empty with ``bounds="clamp"``.
    TypeError: indices are not integers, or `data` is neither an array nor a shape.
    ValueError: a shape or an option is wrong.
    MemoryError: an allocation failed."#
    };
    ("cache plan errors") => {
        r#"Raises:
    IndexError: a position is negative with ``bounds="error"``, or the updates do not fit at a
        position in linear mode.
    TypeError: positions are not integers, or `data` is neither an array nor a shape.
    ValueError: a shape or an option is wrong.
    MemoryError: an allocation failed."#
    };
    ("scatter slot plan errors") => {
        r#"Raises:
    IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or the cache
        has no slots with ``bounds="clamp"``.
    TypeError: slots are not integers, or `data` is neither an array nor a shape.
    ValueError: a shape or an option is wrong, or two updates have the same slot with
        ``duplicates="reject"``.
    MemoryError: an allocation failed."#
    };
    ("gather slot plan errors") => {
        r#"Raises:
    IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or the cache
        has no slots with ``bounds="clamp"``.
    TypeError: slots are not integers, or `data` is neither an array nor a shape.
    ValueError: a shape or an option is wrong.
    MemoryError: an allocation failed."#
    };
    ("planned write errors") => {
        r#"Raises:
    TypeError: element types do not fit, or an argument is a masked array.
    ValueError: a shape, the strides of `data`, a scale or a zero point is wrong, the plan has a
        reduction, `data` is read-only or may be read-only, or `data` shares memory with another
        argument.
    MemoryError: an allocation failed.

After each of these errors, no array has changed."#
    };
    ("slot errors") => {
        r#"Raises:
    IndexError: a slot does not exist, and `bounds` neither skips nor replaces it, or there are
        no slots with ``bounds="clamp"``.
    TypeError: element types do not fit, slots are not integers, or an argument is a masked
        array.
    ValueError: a shape, an option, a scale or a zero point is wrong, `data` is read-only or may
        be read-only, `data` shares memory with another argument, or two updates have the same
        destination with ``duplicates="reject"``.
    MemoryError: an allocation failed.

After each of these errors, no array has changed."#
    };
    ("numpy errors") => {
        r#"Raises:
    IndexError: an index is out of bounds, or numpy does not accept `indices` as an index.
    TypeError: `a` is not a numpy array or is a masked array, numpy does not define the
        operation for the types of `a` and `b`, or numpy refuses to convert the result to the
        type of `a`. For a tensor of another library, use `scatter_update` with ``out=a``.
    ValueError: `b` does not broadcast to the shape of ``a[indices]``, `a` is read-only, or numpy's
        own function would run and `a` has 32 or more dimensions.
    MemoryError: an allocation failed."#
    };
    ("numpy arguments") => {
        r#"Args:
    a: writable numpy array of any shape.
    indices: any index that numpy accepts: integers, booleans, slices, arrays, None, and
        tuples of these.
    b: array, list or number that broadcasts to the shape of ``a[indices]``. If `b` may
        share memory with `a`, a copy of `b` is used."#
    };
    ("numpy order") => {
        r#"If several values of `b` belong to one element of `a`, they are applied in the row-major order
of ``a[indices]``. The result is equal to numpy's result in every bit, and does not depend on the
number of threads. If a kernel of ndscatter runs the call and the call raises an error, `a` is
unchanged. A kernel gives no warning if a float overflows.

In some calls, numpy's own function runs instead of a kernel. One reason is a type for which
ndscatter has no arithmetic. Another reason is a type for which a kernel's result could differ from
numpy's result. A kernel's result could differ for an `a` of float32 and a `b` of float64, if
float32 does not represent `b` exactly."#
    };
}

pub(crate) use docs;
