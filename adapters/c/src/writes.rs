//! The C functions that run several writes with one list of indices. A write may convert its
//! updates to another element type.
//!
//! This file reads the structs of writes and conversions, and makes one call of the crate
//! `ndscatter`. It does not know how a write runs.

use ndscatter::{Conversion, Format, Rounding, Scaling, Write};
use ndscatter_host::dlpack::{DLDataType, DLTensor};

use crate::boundary;
use crate::dlpack;
use crate::failure::Failure;
use crate::memory::with_room;
use crate::operators::Request::{self, Along, Nd, Paged};
use crate::options::{Options, nds_options, one_of};
use crate::plan::nds_plan;
use crate::status::nds_status;
use crate::structs::{self, Sized32};

/// How a write converts its updates to the elements of data. The caller must set `size`. A field
/// that is 0 or null selects its default. The updates are float32, float16 or bfloat16.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_conversion {
    /// sizeof(nds_conversion), as the caller's header defines it.
    pub size: u32,
    /// Format of the elements of data: a value of nds_format.
    pub format: i32,
    /// Rounding: a value of nds_rounding.
    pub rounding: i32,
    /// Use of scale: a value of nds_scaling.
    pub scaling: i32,
    /// Scale: positive float32 numbers in a tensor that broadcasts to the shape of updates. Null:
    /// no scale.
    pub scale: *const DLTensor,
    /// Zero point of an integer format: int32 numbers in a tensor that broadcasts to the shape of
    /// updates. Null: no zero point.
    pub zero_point: *const DLTensor,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are integers and nullable
// 64-bit pointers, so any bytes are valid field values. `ENDS` is empty.
unsafe impl Sized32 for nds_conversion {
    const NAME: &'static str = "nds_conversion";
    const ENDS: &'static [usize] = &[];
}

/// One write of a call: the updates that the call writes to data, in place. The caller must set
/// `size`, data and updates.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct nds_write {
    /// sizeof(nds_write), as the caller's header defines it. It is also the distance in bytes
    /// between two writes of an array.
    pub size: u32,
    /// Tensor that the write changes.
    pub data: *mut DLTensor,
    /// Values that the write stores in data.
    pub updates: *const DLTensor,
    /// Conversion of updates to the elements of data. Null: updates have the element type of data.
    pub conversion: *const nds_conversion,
}

// SAFETY: the struct is `repr(C)` and begins with its size. Its fields are an integer and nullable
// 64-bit pointers, so any bytes are valid field values. `ENDS` is empty.
unsafe impl Sized32 for nds_write {
    const NAME: &'static str = "nds_write";
    const ENDS: &'static [usize] = &[];
}

/// The formats of data, at the positions of the values of `nds_format`. `None`: the element type of
/// data.
pub(crate) const FORMATS: [Option<Format>; Format::ALL.len() + 1] = {
    let mut formats = [None; Format::ALL.len() + 1];
    let mut at = 0;
    while at < Format::ALL.len() {
        formats[at + 1] = Some(Format::ALL[at]);
        at += 1;
    }
    formats
};

/// The copied structs of one write.
#[derive(Clone, Copy)]
struct Given {
    write: nds_write,
    conversion: Option<nds_conversion>,
}

impl Given {
    /// Copies the structs of all writes.
    ///
    /// # Safety
    ///
    /// `writes` is null or points to `count` writes whose distance is the size of the first write.
    /// Their conversions are null or valid.
    unsafe fn all(writes: *const nds_write, count: usize) -> Result<Vec<Self>, Failure> {
        let mut all = with_room(count)?;
        if count == 0 {
            return Ok(all);
        }
        if writes.is_null() {
            return Err(Failure::invalid(format_args!("`writes` is null")));
        }
        // SAFETY: `writes` points to at least one write (checked above, contract of this function).
        let distance = unsafe { structs::size_of_given(writes)? };
        for at in 0..count {
            // SAFETY: `at` is below `count`, so the write is readable (contract of this function).
            // `structs` reads structs at any alignment.
            unsafe {
                let write = writes.byte_add(at * distance);
                let size = structs::size_of_given(write)?;
                if size != distance {
                    return Err(Failure::invalid(format_args!(
                        "write {at} has the size {size}, and write 0 the size {distance}; use one \
                         size"
                    )));
                }
                let write = structs::read(write)?;
                let conversion = (!write.conversion.is_null())
                    .then(|| structs::read(write.conversion))
                    .transpose()?;
                all.push(Self { write, conversion });
            }
        }
        Ok(all)
    }

    /// Returns the tensors of the write, with their names.
    fn tensors(&self) -> impl Iterator<Item = (&'static str, *const DLTensor)> {
        let Self { write, conversion } = *self;
        let of_conversion = conversion.map(|conversion| {
            [
                ("scale", conversion.scale),
                ("zero_point", conversion.zero_point),
            ]
        });
        [
            ("data", write.data.cast_const()),
            ("updates", write.updates),
        ]
        .into_iter()
        .chain(of_conversion.into_iter().flatten())
    }

    /// Returns the write of the crate.
    ///
    /// # Safety
    ///
    /// The tensors are null or valid, and their memory is valid during `'a`.
    unsafe fn view<'a>(&self) -> Result<Write<'a>, Failure> {
        let nds_write { data, updates, .. } = self.write;
        // SAFETY: the tensors are null or valid (contract of this function). `*data` is read after
        // `view_in_place` has refused a null `data`.
        unsafe {
            let view = dlpack::view_in_place("data", data)?;
            let write = Write::new(view, dlpack::view("updates", updates)?);
            match self.conversion {
                Some(conversion) => Ok(write.convert(conversion.view((*data).dtype)?)),
                None => {
                    dlpack::check_types((*data).dtype, [("updates", updates)])?;
                    Ok(write)
                }
            }
        }
    }
}

impl nds_conversion {
    /// Returns the conversion of the crate to data of the type `data`.
    ///
    /// # Safety
    ///
    /// The scale and the zero point are null or valid, and their memory is valid during `'a`.
    unsafe fn view<'a>(&self, data: DLDataType) -> Result<Conversion<'a>, Failure> {
        let mut conversion = Conversion::new()
            .rounding(one_of("rounding", self.rounding, Rounding::ALL)?)
            .scaling(one_of("scaling", self.scaling, Scaling::ALL)?);
        if let Some(format) = self.format_in(data)? {
            conversion = conversion.format(format);
        }
        // SAFETY: the tensors are null or valid (contract of this function).
        unsafe {
            if let Some(scale) = dlpack::view_if_any("scale", self.scale)? {
                conversion = conversion.scale(scale);
            }
            if let Some(zero_point) = dlpack::view_if_any("zero_point", self.zero_point)? {
                conversion = conversion.zero_point(zero_point);
            }
        }
        Ok(conversion)
    }

    /// Returns the format in data of the type `data`. If the crate only moves elements of this type,
    /// the type names its format, and no other format is stored in it.
    fn format_in(&self, data: DLDataType) -> Result<Option<Format>, Failure> {
        let format = one_of("format", self.format, FORMATS)?;
        if !data.is_moved() {
            return Ok(format);
        }
        let named = data.format();
        match format.or(named) {
            Some(format) if named == Some(format) => Ok(named),
            Some(format) => Err(Failure::invalid(format_args!(
                "elements of `data` have {data}, which is not the format {format}"
            ))),
            None => Err(Failure::unsupported(format_args!(
                "elements of `data` have {data}, and no conversion to this type exists"
            ))),
        }
    }
}

/// Returns the writes of the crate. Checks that no description of a tensor is stored in memory that
/// the call writes.
///
/// # Safety
///
/// All tensors are null or valid, and their memory is valid during `'a`.
unsafe fn views<'a>(given: &[Given], indices: *const DLTensor) -> Result<Vec<Write<'a>>, Failure> {
    let mut views = with_room(given.len())?;
    for given in given {
        // SAFETY: the tensors are null or valid (contract of this function).
        views.push(unsafe { given.view()? });
    }
    let outputs = given.iter().map(|given| given.write.data.cast_const());
    let all = given.iter().flat_map(Given::tensors);
    // SAFETY: the tensors are null or valid (contract of this function). `Given::view` has accepted
    // the data of each write.
    unsafe { dlpack::check_all_descriptions(outputs, all.chain([("indices", indices)]))? };
    Ok(views)
}

/// Runs writes with the indices `indices`.
///
/// # Safety
///
/// Every pointer is null or valid, as docs/c.md requires.
unsafe fn write_all(
    request: Request,
    indices: *const DLTensor,
    (writes, count): (*const nds_write, usize),
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: all pointers are null or valid, and the memory of the tensors is valid during the
        // call (contract of this function).
        unsafe {
            let options = Options::new(options)?;
            let scatter = options.scatter(request.operator()?)?;
            let given = Given::all(writes, count)?;
            let at = dlpack::view("indices", indices)?;
            let mut views = views(&given, indices)?;
            let done = scatter.write_all(at, &mut views);
            options.threads.check()?;
            Ok(done?)
        }
    })
}

/// Writes updates to slots of paged caches, in place. Each of the count writes has its own data,
/// updates and conversion. All writes have the same indices, which are slots. The shapes are those
/// of nds_scatter_paged. Two 4-bit integers are one element of data, so the last dim of such updates
/// is twice as long as the last dim of data. No reduction is allowed. If several updates have the
/// same destination, the last of them stays. All writes are checked before the first byte is
/// written. The data of a write must not share memory with another tensor of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_write_paged(
    indices: *const DLTensor,
    writes: *const nds_write,
    count: usize,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { write_all(Paged, indices, (writes, count), options) }
}

/// Writes updates to slices along axis, in place, as nds_scatter_update does without a reduction.
/// The description of the writes of nds_write_paged also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_write_update(
    indices: *const DLTensor,
    axis: i64,
    writes: *const nds_write,
    count: usize,
    options: *const nds_options,
) -> nds_status {
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { write_all(Along { axis }, indices, (writes, count), options) }
}

/// Writes updates to slices that tuples select, in place, as nds_scatter_nd does without a
/// reduction. The description of the writes of nds_write_paged also applies to this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_write_nd(
    indices: *const DLTensor,
    writes: *const nds_write,
    count: usize,
    options: *const nds_options,
) -> nds_status {
    let request = Nd { batch_dims: 0 };
    // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers.
    unsafe { write_all(request, indices, (writes, count), options) }
}

/// Runs writes with the indices of the plan of a scatter. The data of each write must have the shape
/// and the strides for which the plan was made, and may have any element type. The description of
/// the writes of nds_write_paged also applies to this function. The call uses only the options
/// max_threads, pool and goal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nds_plan_write(
    plan: *const nds_plan,
    writes: *const nds_write,
    count: usize,
    options: *const nds_options,
) -> nds_status {
    boundary::cross(|| {
        // SAFETY: docs/c.md obliges the caller to pass only null or valid pointers, and tensors
        // whose memory is valid during the call.
        unsafe {
            let plan = nds_plan::of_scatter(plan)?;
            let options = Options::new(options)?;
            let given = Given::all(writes, count)?;
            let mut views = views(&given, std::ptr::null())?;
            let run = plan.run().execution(options.execution());
            let done = run.write_all(&mut views);
            options.threads.check()?;
            Ok(done?)
        }
    })
}
