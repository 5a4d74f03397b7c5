//! Models of one node, and the reference loops.

#![allow(dead_code, reason = "each test uses its own part of this module")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "sizes of tests are small"
)]

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as DimValue;
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto, type_proto,
};
use tract_onnx::prelude::*;

pub(crate) const REDUCTIONS: [&str; 5] = ["none", "add", "mul", "min", "max"];

/// ONNX with or without the adapter.
pub(crate) fn onnx(with_adapter: bool) -> tract_onnx::Onnx {
    let mut onnx = tract_onnx::onnx();
    if with_adapter {
        ndscatter_tract::register(&mut onnx);
    }
    onnx
}

/// One node of an ONNX model.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) attributes: Vec<AttributeProto>,
    pub(crate) inputs: Vec<Input>,
}

/// An input of a node.
pub(crate) enum Input {
    /// A type, and a shape in which a name is a symbol.
    Runtime(i32, Vec<&'static str>),
    Constant(Box<TensorProto>),
}

pub(crate) fn integer(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..Default::default()
    }
}

pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::String as i32,
        s: value.as_bytes().into(),
        ..Default::default()
    }
}

/// The number of ONNX for a type.
pub(crate) fn number(datum_type: DatumType) -> i32 {
    match datum_type {
        DatumType::F32 => 1,
        DatumType::U8 => 2,
        DatumType::I8 => 3,
        DatumType::U16 => 4,
        DatumType::I16 => 5,
        DatumType::I32 => 6,
        DatumType::I64 => 7,
        DatumType::Bool => 9,
        DatumType::F16 => 10,
        DatumType::F64 => 11,
        DatumType::U32 => 12,
        DatumType::U64 => 13,
        other => panic!("{other:?} has no number"),
    }
}

/// An input with the type and the shape of `tensor`.
pub(crate) fn like(tensor: &Tensor) -> Input {
    let dims = tensor.shape().iter().map(|size| &*size.to_string().leak());
    Input::Runtime(number(tensor.datum_type()), dims.collect())
}

/// An input that is constant.
pub(crate) fn constant(tensor: &Tensor) -> Input {
    Input::Constant(Box::new(TensorProto {
        dims: tensor.shape().iter().map(|&size| size as i64).collect(),
        data_type: number(tensor.datum_type()),
        raw_data: tensor.as_bytes().to_vec(),
        ..Default::default()
    }))
}

impl Case {
    pub(crate) fn proto(&self) -> ModelProto {
        let mut graph = GraphProto::default();
        let mut names = vec![];
        for (place, input) in self.inputs.iter().enumerate() {
            let name = format!("input_{place}");
            names.push(name.clone());
            match input {
                Input::Runtime(number, dims) => graph.input.push(value_info(name, *number, dims)),
                Input::Constant(tensor) => graph.initializer.push(TensorProto {
                    name,
                    ..(**tensor).clone()
                }),
            }
        }
        graph.node.push(NodeProto {
            op_type: self.op.into(),
            name: "node".into(),
            input: names,
            output: vec!["output".into()],
            attribute: self.attributes.clone(),
            ..Default::default()
        });
        graph.output.push(ValueInfoProto {
            name: "output".into(),
            ..Default::default()
        });
        ModelProto {
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: 18,
            }],
            ..Default::default()
        }
    }

    /// Loads the model as far as the typed model.
    pub(crate) fn typed(&self, with_adapter: bool) -> TractResult<TypedModel> {
        onnx(with_adapter)
            .model_for_proto_model(&self.proto())?
            .into_typed()
    }

    /// Loads and optimises the model.
    pub(crate) fn load(&self, with_adapter: bool) -> TractResult<Arc<TypedRunnableModel>> {
        self.typed(with_adapter)?
            .into_decluttered()?
            .into_optimized()?
            .into_runnable()
    }
}

fn value_info(name: String, number: i32, dims: &[&str]) -> ValueInfoProto {
    let dims = dims.iter().map(|dim| tensor_shape_proto::Dimension {
        value: Some(match dim.parse() {
            Ok(size) => DimValue::DimValue(size),
            Err(_) => DimValue::DimParam((*dim).into()),
        }),
        ..Default::default()
    });
    let tensor = type_proto::Tensor {
        elem_type: number,
        shape: Some(TensorShapeProto {
            dim: dims.collect(),
        }),
    };
    ValueInfoProto {
        name,
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Names of the operators of a model.
pub(crate) fn ops(model: &TypedModel) -> Vec<String> {
    model
        .nodes()
        .iter()
        .map(|node| node.op().name().into_owned())
        .collect()
}

/// Whether two tensors have the same type, shape and bits.
pub(crate) fn same(left: &Tensor, right: &Tensor) -> bool {
    left.datum_type() == right.datum_type()
        && left.shape() == right.shape()
        && left.as_bytes() == right.as_bytes()
}

/// Random numbers (xorshift), the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as usize) % end.max(1)
    }

    /// A tensor of small integers of a type.
    pub(crate) fn tensor(&mut self, datum_type: DatumType, shape: &[usize]) -> Tensor {
        let count = shape.iter().product();
        let values: Vec<i64> = (0..count).map(|_| self.below(7) as i64).collect();
        let values = Tensor::from_shape(shape, &values).expect("a value per element");
        if datum_type == DatumType::Bool {
            let odd: Vec<bool> = (0..count).map(|_| self.below(2) == 1).collect();
            return Tensor::from_shape(shape, &odd).expect("a value per element");
        }
        values
            .cast_to_dt(datum_type)
            .expect("a number")
            .into_owned()
    }

    /// Indices of axes of the sizes `sizes`, in turns. A third of them count from the end.
    pub(crate) fn indices(&mut self, shape: &[usize], sizes: &[usize]) -> Tensor {
        let count: usize = shape.iter().product();
        let values: Vec<i64> = (0..count)
            .map(|place| {
                let size = sizes[place % sizes.len()];
                let index = self.below(size) as i64;
                if self.below(3) == 0 {
                    index - size as i64
                } else {
                    index
                }
            })
            .collect();
        Tensor::from_shape(shape, &values).expect("a value per element")
    }
}

/// Elements with the reductions, written for the tests.
pub(crate) trait Value: Datum + Copy {
    fn combine(self, update: Self, reduction: &str) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn combine(self, update: Self, reduction: &str) -> Self {
                match reduction {
                    "add" => self.wrapping_add(update),
                    "mul" => self.wrapping_mul(update),
                    "min" => self.min(update),
                    "max" => self.max(update),
                    _ => update,
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn combine(self, update: Self, reduction: &str) -> Self {
                match reduction {
                    "add" => self + update,
                    "mul" => self * update,
                    "min" if update < self => update,
                    "max" if update > self => update,
                    "min" | "max" => self,
                    _ => update,
                }
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);
floats!(f16 f32 f64);

impl Value for bool {
    fn combine(self, update: Self, reduction: &str) -> Self {
        match reduction {
            "add" | "max" => self | update,
            "mul" | "min" => self & update,
            _ => update,
        }
    }
}

/// Evaluates `$body` with the Rust type `$type` of a tract type.
#[macro_export]
macro_rules! for_type {
    ($datum_type:expr, $type:ident => $body:expr) => {
        $crate::for_type!($datum_type, $type => $body; Bool = bool, I8 = i8, I16 = i16, I32 = i32,
            I64 = i64, U8 = u8, U16 = u16, U32 = u32, U64 = u64, F16 = f16, F32 = f32, F64 = f64)
    };
    ($datum_type:expr, $type:ident => $body:expr; $($name:ident = $rust:ty),*) => {
        match $datum_type {
            $(DatumType::$name => { type $type = $rust; $body })*
            other => panic!("{other:?} is not tested"),
        }
    };
}

pub(crate) const TYPES: [DatumType; 12] = [
    DatumType::Bool,
    DatumType::I8,
    DatumType::I16,
    DatumType::I32,
    DatumType::I64,
    DatumType::U8,
    DatumType::U16,
    DatumType::U32,
    DatumType::U64,
    DatumType::F16,
    DatumType::F32,
    DatumType::F64,
];

fn from_end(index: i64, size: usize) -> usize {
    (if index < 0 {
        index + size as i64
    } else {
        index
    }) as usize
}

fn array<T: Datum>(tensor: &Tensor) -> tract_ndarray::ArrayD<T> {
    tensor
        .to_plain_array_view::<T>()
        .expect("a tensor of the type")
        .into_owned()
}

/// ScatterND as a loop over tuples and elements.
pub(crate) fn scatter_nd<T: Value>(
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    reduction: &str,
) -> Tensor {
    let (mut data, indices, updates) =
        (array::<T>(data), array::<i64>(indices), array::<T>(updates));
    let tuple_rank = indices.ndim() - 1;
    let len = indices.shape()[tuple_rank];
    for (at, update) in updates.indexed_iter() {
        let mut at_tuple: Vec<usize> = (0..tuple_rank).map(|axis| at[axis]).collect();
        at_tuple.push(0);
        let mut to: Vec<usize> = (0..len)
            .map(|axis| {
                at_tuple[tuple_rank] = axis;
                from_end(indices[&*at_tuple], data.shape()[axis])
            })
            .collect();
        to.extend((tuple_rank..updates.ndim()).map(|axis| at[axis]));
        let value = &mut data[&*to];
        *value = value.combine(*update, reduction);
    }
    data.into_tensor()
}

/// ScatterElements as a loop over elements.
pub(crate) fn scatter_elements<T: Value>(
    data: &Tensor,
    indices: &Tensor,
    updates: &Tensor,
    axis: usize,
    reduction: &str,
) -> Tensor {
    let (mut data, indices, updates) =
        (array::<T>(data), array::<i64>(indices), array::<T>(updates));
    for (mut at, update) in updates.indexed_iter() {
        let index = indices[&at];
        at[axis] = from_end(index, data.shape()[axis]);
        data[&at] = data[&at].combine(*update, reduction);
    }
    data.into_tensor()
}

/// GatherND as a loop over elements of the result.
pub(crate) fn gather_nd<T: Value>(data: &Tensor, indices: &Tensor, batch_dims: usize) -> Tensor {
    let (data, indices) = (array::<T>(data), array::<i64>(indices));
    let tuple_rank = indices.ndim() - 1;
    let len = indices.shape()[tuple_rank];
    let mut shape = indices.shape()[..tuple_rank].to_vec();
    shape.extend(&data.shape()[batch_dims + len..]);
    let rank = shape.len();
    let result = tract_ndarray::ArrayD::<T>::from_shape_fn(shape, |at| {
        let mut at_tuple: Vec<usize> = (0..tuple_rank).map(|axis| at[axis]).collect();
        at_tuple.push(0);
        let mut from: Vec<usize> = (0..batch_dims).map(|axis| at[axis]).collect();
        for axis in 0..len {
            at_tuple[tuple_rank] = axis;
            from.push(from_end(
                indices[&*at_tuple],
                data.shape()[batch_dims + axis],
            ));
        }
        from.extend((tuple_rank..rank).map(|axis| at[axis]));
        data[&*from]
    });
    result.into_tensor()
}

/// GatherElements as a loop over elements of the result.
pub(crate) fn gather_elements<T: Value>(data: &Tensor, indices: &Tensor, axis: usize) -> Tensor {
    let (data, indices) = (array::<T>(data), array::<i64>(indices));
    let result = tract_ndarray::ArrayD::<T>::from_shape_fn(indices.shape(), |mut at| {
        at[axis] = from_end(indices[&at], data.shape()[axis]);
        data[at]
    });
    result.into_tensor()
}

/// TensorScatter as a loop over elements of the updates.
pub(crate) fn tensor_scatter<T: Value>(
    data: &Tensor,
    updates: &Tensor,
    starts: &[i64],
    axis: usize,
) -> Tensor {
    let (mut data, updates) = (array::<T>(data), array::<T>(updates));
    for (mut at, update) in updates.indexed_iter() {
        let size = data.shape()[axis];
        at[axis] = (starts.get(at[0]).copied().unwrap_or(0) as usize + at[axis]) % size;
        data[&at] = *update;
    }
    data.into_tensor()
}
