//! The gathers by name.

use ndscatter::Operator;
use pyo3::prelude::*;

use crate::array::{Source, elements_of};
use crate::failure::Failure;
use crate::operands::{self, Operands};
use crate::options::Meaning;
use crate::scatter::fit;
use crate::threads::{execution, run};

/// One gather.
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
        let (data, mut indices) = (data.look()?, operands::indices(indices)?);
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
    /// Take the slices of `data` that tuples of coordinates name.
    ///
    /// With ``k = indices.shape[-1]`` and ``b = batch_dims`` the result has the shape
    /// ``indices.shape[:-1] + data.shape[b + k:]``. The first ``b`` dimensions of both are
    /// the same, and each position of them is a gather of its own.
    ///
    /// Args:
    ///     data: array of any shape and type.
    ///     indices: integers, ``(..., k)``; negative ones count from the end.
    ///     batch_dims: leading dimensions that both share.
    ///     bounds: ``"error"``, ``"skip"``, which leaves zeros, or ``"clamp"``.
    ///     negative_indices: whether negative indices count from the end.
    ///     out: array to write to.
    ///     threads: at most so many; 1 is the calling thread; None is all.
    ///
    /// Returns:
    ///     `out`, or a new array of the type that `data` came as.
    ///
    /// Raises:
    ///     IndexError: an index is out of bounds.
    ///     TypeError: types differ, or indices are no integers.
    ///     ValueError: shapes, options, or memory that is shared or read-only.
    ///     BufferError: `out` does not say that it may be written.
    ///
    /// Nothing has been written then. The rule is that of ONNX GatherND 13.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> data = np.array([[0, 1], [2, 3]])
    /// >>> ndscatter.gather_nd(data, [[1, 0], [0, 1]])
    /// array([2, 1])
    gather_nd [*, batch_dims=0] batch_dims: usize => Operator::Nd { batch_dims };

    /// Take slices of `data` along one axis.
    ///
    /// The result has the shape
    /// ``data.shape[:axis] + indices.shape + data.shape[axis + 1:]``.
    ///
    /// Args:
    ///     data: array of rank 1 or more and of any type.
    ///     indices: integers of any shape; negative ones count from the end.
    ///     axis: the axis; negative ones count from the end.
    ///
    /// Other arguments, the result and errors are those of `gather_nd`. The rule is that of
    /// ONNX Gather 13, numpy ``take`` and torch ``index_select``.
    ///
    /// >>> import numpy as np, ndscatter
    /// >>> ndscatter.gather(np.array([[1, 2], [3, 4], [5, 6]]), [2, 0])
    /// array([[5, 6],
    ///        [1, 2]])
    gather [axis=0, *] axis: isize => Operator::Along { axis };

    /// Take one element of `data` for each index, at the index's own position but for one
    /// axis.
    ///
    /// Element ``[i, j, k]`` of the result is ``data[i, indices[i, j, k], k]`` where the axis
    /// is 1.
    ///
    /// Args:
    ///     data: array of rank 1 or more and of any type.
    ///     indices: integers, of the rank of `data`; off the axis no longer than `data`.
    ///     axis: the axis; negative ones count from the end.
    ///
    /// Other arguments, the result and errors are those of `gather_nd`. The rule is that of
    /// ONNX GatherElements 13, numpy ``take_along_axis`` and torch ``gather``.
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
