//! The public gathers: `gather_nd`, `gather`, `gather_elements`.

use ndscatter::Operator;
use pyo3::prelude::*;

use crate::array::{Source, elements_of};
use crate::failure::Failure;
use crate::operands::{self, Operands};
use crate::options::Meaning;
use crate::scatter::fit;
use crate::threads::{execution, run};

/// The arguments of one gather.
struct Call<'a, 'py> {
    operator: Operator,
    meaning: Meaning,
    data: &'a Bound<'py, PyAny>,
    indices: &'a Bound<'py, PyAny>,
    out: Option<&'a Bound<'py, PyAny>>,
    threads: Option<isize>,
}

impl<'py> Call<'_, 'py> {
    fn run(self) -> PyResult<Bound<'py, PyAny>> {
        let (py, execution) = (self.data.py(), execution(self.threads)?);
        let (data, indices) = (Source::of(self.data)?, Source::of(self.indices)?);
        let output = self.out.map(Source::of_output).transpose()?;
        let (data, mut indices) = (data.read()?, operands::indices(indices)?);
        let shape = self.operator.output_shape(data.shape(), indices.shape());
        let shape = shape.map_err(Failure)?;
        let output = output.map(operands::output).transpose()?;
        let operands = Operands::new(data, None, output, true)?;
        let operator = fit(self.operator, &operands, &mut indices)?;
        let gather = self.meaning.gather(operator)?.execution(execution);
        let result = operands.new_result(py, &shape)?;
        let size = elements_of(&shape);
        let output = operands.target(result.as_ref())?;
        let (data, at) = (operands.data.view()?, indices.view()?);
        run(py, size, || gather.write_into(data, at, output))?.map_err(Failure)?;
        operands.finish(result)
    }
}

macro_rules! gathers {
    ($(
        $(#[$docs:meta])*
        $name:ident [$($argument:tt)*] $option:ident: $type:ty => $operator:expr;
    )*) => {$(
        $(#[$docs])*
        #[pyfunction]
        #[pyo3(signature = (
            data, indices, $($argument)*, bounds="error", negative_indices=true, out=None,
            threads=None,
        ))]
        pub(crate) fn $name<'py>(
            data: &Bound<'py, PyAny>,
            indices: &Bound<'py, PyAny>,
            $option: $type,
            bounds: &str,
            negative_indices: bool,
            out: Option<&Bound<'py, PyAny>>,
            threads: Option<isize>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let call = Call {
                operator: $operator,
                meaning: Meaning::of_indices(bounds, negative_indices)?,
                data,
                indices,
                out,
                threads,
            };
            call.run()
        }
    )*};
}

gathers! {
    /// Return the slices of `data` that tuples of coordinates address.
    ///
    /// With ``k = indices.shape[-1]`` and ``b = batch_dims`` the result has the shape
    /// ``indices.shape[:-1] + data.shape[b + k:]``. The first ``b`` dimensions of `data` and
    /// `indices` are equal. Each position of them is a separate gather.
    ///
    /// Args:
    ///     data: array of any shape and element type.
    ///     indices: integers of any integer type, of shape ``(..., k)``.
    ///     batch_dims: number of leading dimensions that `data` and `indices` share.
    ///     bounds: treatment of an index out of bounds: ``"error"``, ``"skip"`` (the slice is
    ///         filled with zeros) or ``"clamp"`` (it is moved to the nearest valid index).
    ///     negative_indices: whether negative indices count from the end. If not, they are
    ///         out of bounds.
    ///     out: array to write the result to.
    ///     threads: largest number of threads; 1 is the calling thread, None is all threads.
    ///
    /// Returns:
    ///     `out`, or a new array of the library of `data`.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds.
    ///     TypeError: `out` has another element type than `data`, or indices are not integers.
    ///     ValueError: a shape or an option is wrong, `out` shares memory with another
    ///         argument, or `out` is a read-only numpy array.
    ///     BufferError: `out` is an array of another library without permission to write.
    ///
    /// After an error nothing has been written. The semantics are those of ONNX GatherND 13.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([[0, 1], [2, 3]])
    /// >>> ndscatter.gather_nd(data, [[1, 0], [0, 1]])
    /// array([2, 1])
    gather_nd [*, batch_dims=0] batch_dims: usize => Operator::Nd { batch_dims };

    /// Return the slices of `data` at the positions `indices` along one axis.
    ///
    /// The result has the shape
    /// ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type.
    ///     indices: integers of any integer type and any shape.
    ///     axis: the indexed axis; a negative axis counts from the last one.
    ///
    /// Other arguments, the result and errors are those of `gather_nd`. The semantics are
    /// those of ONNX Gather 13, numpy ``take`` and torch ``index_select``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> ndscatter.gather(np.array([[1, 2], [3, 4], [5, 6]]), [2, 0])
    /// array([[5, 6],
    ///        [1, 2]])
    gather [axis=0, *] axis: isize => Operator::Along { axis };

    /// Return one element of `data` for each index, which selects a position along one axis.
    ///
    /// For axis 1, element ``[i, j, k]`` of the result is ``data[i, indices[i, j, k], k]``. The
    /// result has the shape of `indices`.
    ///
    /// Args:
    ///     data: array of rank 1 or more, of any element type.
    ///     indices: integers of any integer type, of the rank of `data`. Along `axis` they may have
    ///         any size, along other axes at most that of `data`.
    ///     axis: the indexed axis; a negative axis counts from the last one.
    ///
    /// Other arguments, the result and errors are those of `gather_nd`. The semantics are
    /// those of ONNX GatherElements 13, numpy ``take_along_axis`` and torch ``gather``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([[1, 2], [3, 4]])
    /// >>> ndscatter.gather_elements(data, [[0, 0], [1, 0]], axis=1)
    /// array([[1, 1],
    ///        [4, 3]])
    gather_elements [axis=0, *] axis: isize => Operator::Elements { axis };
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gather_nd, module)?)?;
    module.add_function(wrap_pyfunction!(gather, module)?)?;
    module.add_function(wrap_pyfunction!(gather_elements, module)?)
}
