//! Replaces operators in typed models.

use tract_core::internal::{TractResult, TypedModel, TypedNode, TypedOp, bail};
use tract_core::ops::logic::IfThenElse;
use tract_core::ops::scan::Scan;

use crate::gather::NdGather;
use crate::scatter::NdScatter;

/// Makes the scatters and gathers of a typed model run on ndscatter.
///
/// The function replaces tract's ScatterNd, ScatterElements, GatherNd and GatherElements, also in
/// the bodies of loops (`Scan`) and conditions (`IfThenElse`). It returns the number of replaced
/// nodes. Names, shapes and types do not change. A typed model can be one from ONNX or from NNEF,
/// and one that is decluttered.
///
/// These nodes stay with tract: nodes whose elements are dimensions (`TDim`), strings or blobs, and
/// reductions of quantised elements. The bodies of loops of an *optimised* model stay with tract
/// too, so call the function before `into_optimized`.
///
/// # Errors
///
/// An error of tract about an inconsistent model.
///
/// # Examples
///
/// ```
/// use tract_core::internal::*;
/// use tract_core::ops::array::{ScatterNd, ScatterReduction};
///
/// let mut model = TypedModel::default();
/// let data = model.add_source("data", f32::fact([3]))?;
/// let indices = model.add_source("indices", i64::fact([2, 1]))?;
/// let updates = model.add_source("updates", f32::fact([2]))?;
/// let add = ScatterNd::new(ScatterReduction::Add);
/// let sums = model.wire_node("sums", add, &[data, indices, updates])?;
/// model.select_output_outlets(&sums)?;
///
/// assert_eq!(ndscatter_tract::rewrite(&mut model)?, 1);
///
/// let inputs = tvec!(
///     tensor1(&[0.0_f32, 0.0, 5.0]).into_tvalue(),
///     tensor2(&[[-1_i64], [-1]]).into_tvalue(), // tract's own operator panics
///     tensor1(&[1.0_f32, 2.0]).into_tvalue(),
/// );
/// let outputs = model.into_optimized()?.into_runnable()?.run(inputs)?;
/// assert_eq!(*outputs[0], tensor1(&[0.0_f32, 0.0, 8.0]));
/// # TractResult::Ok(())
/// ```
pub fn rewrite(model: &mut TypedModel) -> TractResult<usize> {
    walk(model, &mut |model, id| {
        let op = replacement(model, model.node(id))?;
        Ok(op.map_or(0, |op| {
            model.node_mut(id).op = op;
            1
        }))
    })
}

/// Undoes [`rewrite`]: makes the scatters and gathers of a typed model run on tract's operators.
/// Returns the number of replaced nodes.
///
/// tract can write its own operators to NNEF files, and not those of ndscatter.
///
/// # Errors
///
/// The model has a TensorScatter, which tract does not have. The other nodes may have been replaced.
pub fn restore(model: &mut TypedModel) -> TractResult<usize> {
    walk(model, &mut |model, id| {
        let node = model.node_mut(id);
        let op = if let Some(scatter) = node.op_as::<NdScatter>() {
            scatter.tract()
        } else if let Some(gather) = node.op_as::<NdGather>() {
            gather.tract()
        } else {
            return Ok(0);
        };
        let Some(op) = op else {
            bail!("tract has no operator for node {node}");
        };
        node.op = op;
        Ok(1)
    })
}

/// Calls `change` for each node of the model and of its bodies. Returns the sum of the results.
fn walk(
    model: &mut TypedModel,
    change: &mut dyn FnMut(&mut TypedModel, usize) -> TractResult<usize>,
) -> TractResult<usize> {
    let mut changed = 0;
    for id in 0..model.nodes().len() {
        let node = model.node_mut(id);
        if let Some(scan) = node.op_as_mut::<Scan>() {
            changed += walk(&mut scan.body, change)?;
        } else if let Some(condition) = node.op_as_mut::<IfThenElse>() {
            changed += walk(&mut condition.then_body, change)?;
            changed += walk(&mut condition.else_body, change)?;
        } else {
            changed += change(model, id)?;
        }
    }
    Ok(changed)
}

/// Returns the operator that replaces the operator of `node`, or `None` if `node` stays as it is.
fn replacement(model: &TypedModel, node: &TypedNode) -> TractResult<Option<Box<dyn TypedOp>>> {
    let inputs = model.node_input_facts(node.id)?;
    let Some(data) = inputs.first().filter(|data| data.is_plain()) else {
        return Ok(None);
    };
    let has_element = |dtype: Option<_>| dtype.is_some();
    if let Some(scatter) = NdScatter::of_tract(node.op.as_ref()) {
        return Ok(has_element(scatter.element(data.datum_type))
            .then(|| scatter.planned(&inputs).unwrap_or(scatter).into()));
    }
    let gather = NdGather::of_tract(node.op.as_ref());
    let gather = gather.filter(|gather| has_element(gather.element(data.datum_type)));
    Ok(gather.map(|gather| gather.planned(&inputs).unwrap_or(gather).into()))
}

/// Replaces the operator of one node, as [`rewrite`] does.
pub(crate) fn rewrite_node(model: &mut TypedModel, id: usize) -> TractResult<()> {
    if let Some(op) = replacement(model, model.node(id))? {
        model.node_mut(id).op = op;
    }
    Ok(())
}
