//! Calls whose tensors lie in one buffer, and may share memory.

use std::collections::HashSet;

use arbitrary::Unstructured;
use bytemuck::cast_slice_mut;
use ndscatter::{
    AnyView, AnyViewMut, Bounds, DType, Execution, Gather, Layout, Reduction, Scatter,
    ScatterError, Schedule,
};

use crate::geometry::{Geometry, bytes_of, integer, permuted};

/// Bytes of the buffer.
const BYTES: usize = 512;

/// A tensor in the buffer.
#[derive(Clone, Debug)]
struct Place {
    dtype: DType,
    geometry: Geometry,
    /// Position of element `[0, 0, ..]` in the buffer, in bytes.
    first: usize,
}

impl Place {
    /// Draws strides and a position. Returns `None` if the tensor does not fit in the buffer.
    fn draw(
        u: &mut Unstructured<'_>,
        dtype: DType,
        shape: Vec<usize>,
        may_overlap_itself: bool,
    ) -> arbitrary::Result<Option<Self>> {
        let strides = match u.int_in_range(0..=3)? {
            0 => None,
            1 if may_overlap_itself => Some(small(u, shape.len())?),
            _ => Some(permuted(u, &shape)?),
        };
        let geometry = Geometry { shape, strides };
        let (low, high) = geometry.extent().unwrap_or((0, -1));
        let needed = (high - low + 1) * dtype.size() as i128;
        if needed > BYTES as i128 {
            return Ok(None);
        }
        let room = (BYTES - needed as usize) / dtype.alignment();
        // Tensors are close to each other, so that some share memory.
        let at = u.int_in_range(0..=room.min(160))? * dtype.alignment();
        let first = at + (-low) as usize * dtype.size();
        Ok(Some(Self {
            dtype,
            geometry,
            first,
        }))
    }

    /// Returns the position of each element in the buffer, in row-major order.
    fn elements(&self) -> Vec<usize> {
        let size = self.dtype.size() as i128;
        let at = |offset: i128| (self.first as i128 + offset * size) as usize;
        self.geometry.offsets().into_iter().map(at).collect()
    }

    fn bytes(&self) -> HashSet<usize> {
        let size = self.dtype.size();
        self.elements()
            .into_iter()
            .flat_map(|at| at..at + size)
            .collect()
    }

    fn shape(&self) -> &[usize] {
        &self.geometry.shape
    }

    fn layout(&self) -> Layout<'_> {
        match &self.geometry.strides {
            None => Layout::contiguous(self.shape()),
            Some(strides) => Layout::strided(self.shape(), strides).expect("one stride per dim"),
        }
    }

    /// Whether both places are one: the same shape, and the same address for each element.
    fn is(&self, other: &Self) -> bool {
        let shape = &self.geometry.shape;
        let places = || {
            self.geometry
                .steps()
                .into_iter()
                .zip(other.geometry.steps())
        };
        let mut dims = shape.iter().zip(places());
        (self.first, shape) == (other.first, &other.geometry.shape)
            && (shape.contains(&0) || dims.all(|(&size, (a, b))| size <= 1 || a == b))
    }

    /// Returns a view of the tensor in the buffer at `start`.
    ///
    /// # Safety
    ///
    /// The buffer has [`BYTES`] initialised bytes. While the view is used, only the call that gets
    /// the view writes them.
    unsafe fn view(&self, start: *mut u8) -> AnyView<'_> {
        let ptr = start.wrapping_add(self.first).cast_const();
        // SAFETY: `Place::draw` has put all elements into the buffer. The caller ensures the rest.
        let view = unsafe { AnyView::from_raw_parts(ptr, self.dtype, self.layout()) };
        view.expect("a valid view")
    }

    /// Returns the numbers of all elements in the bytes of the buffer.
    fn read(&self, buffer: &[u8]) -> Vec<i128> {
        let numbers = self.elements().into_iter();
        numbers
            .map(|at| integer(&buffer[at..][..self.dtype.size()], self.dtype))
            .collect()
    }

    fn write(&self, buffer: &mut [u8], numbers: &[i128]) {
        let size = self.dtype.size();
        for (at, number) in self.elements().into_iter().zip(numbers) {
            buffer[at..][..size].copy_from_slice(&bytes_of(*number, size));
        }
    }
}

fn small(u: &mut Unstructured<'_>, rank: usize) -> arbitrary::Result<Vec<isize>> {
    (0..rank).map(|_| u.int_in_range(-7..=7)).collect()
}

fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

const INTEGERS: [DType; 8] = [
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
];

#[derive(Clone, Copy, Debug)]
enum Operator {
    Nd { coordinates: usize },
    Along { axis: usize },
    Elements { axis: usize },
}

impl Operator {
    /// Draws an operator for data of this shape, and a shape of its indices.
    fn draw(u: &mut Unstructured<'_>, data: &[usize]) -> arbitrary::Result<(Self, Vec<usize>)> {
        let (which, rank) = (u.int_in_range(0..=2)?, u.int_in_range(0..=2)?);
        let axis = u.int_in_range(0..=data.len() - 1)?;
        let list = (0..rank)
            .map(|_| u.int_in_range(0..=4))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(match which {
            0 => {
                let coordinates = u.int_in_range(0..=data.len())?;
                (
                    Self::Nd { coordinates },
                    [&list[..], &[coordinates]].concat(),
                )
            }
            1 => (Self::Along { axis }, list),
            _ => {
                let mut shape = data.to_vec();
                shape[axis] = u.int_in_range(0..=5)?;
                (Self::Elements { axis }, shape)
            }
        })
    }

    /// Returns the shape of updates, or of the output of a gather.
    fn listed(self, data: &[usize], indices: &[usize]) -> Vec<usize> {
        match self {
            Self::Nd { coordinates } => {
                [&indices[..indices.len() - 1], &data[coordinates..]].concat()
            }
            Self::Along { axis } => [&data[..axis], indices, &data[axis + 1..]].concat(),
            Self::Elements { .. } => indices.to_vec(),
        }
    }

    /// Returns the position in data of each element of updates, in row-major order. `None`: the
    /// tuple of the element has an index out of bounds.
    fn destinations(self, data: &[usize], shape: &[usize], indices: &[i128]) -> Vec<Option<usize>> {
        let listed = self.listed(data, shape);
        let position = |at: &[usize]| self.position(at, data, shape, indices);
        every(&listed).iter().map(|at| position(at)).collect()
    }

    fn position(
        self,
        at: &[usize],
        data: &[usize],
        shape: &[usize],
        indices: &[i128],
    ) -> Option<usize> {
        let index = |number: usize, size: usize| {
            let (index, size) = (indices[number], size as i128);
            (-size..size)
                .contains(&index)
                .then(|| index.rem_euclid(size) as usize)
        };
        let coordinates = match self {
            Self::Nd { coordinates } => {
                let (list, window) = at.split_at(shape.len() - 1);
                let tuple = number_of(list, &shape[..list.len()]) * coordinates;
                let read = (0..coordinates).map(|axis| index(tuple + axis, data[axis]));
                let mut to = read.collect::<Option<Vec<_>>>()?;
                to.extend(window);
                to
            }
            Self::Along { axis } => {
                let list = number_of(&at[axis..][..shape.len()], shape);
                let to = index(list, data[axis])?;
                [&at[..axis], &[to], &at[axis + shape.len()..]].concat()
            }
            Self::Elements { axis } => {
                let mut to = at.to_vec();
                to[axis] = index(number_of(at, shape), data[axis])?;
                to
            }
        };
        Some(number_of(&coordinates, data))
    }

    /// Whether each index is in bounds, also if no element belongs to it.
    fn is_in_bounds(self, data: &[usize], indices: &[i128]) -> bool {
        let size = |number: usize| match self {
            Self::Nd { coordinates } => data[number % coordinates],
            Self::Along { axis } | Self::Elements { axis } => data[axis],
        };
        let inside = |(number, index): (usize, &i128)| {
            let size = size(number) as i128;
            (-size..size).contains(index)
        };
        indices.iter().enumerate().all(inside)
    }

    fn scatter(self) -> Scatter<'static> {
        match self {
            Self::Nd { .. } => Scatter::nd(),
            Self::Along { axis } => Scatter::along(axis.cast_signed()),
            Self::Elements { axis } => Scatter::elements(axis.cast_signed()),
        }
    }

    fn gather(self) -> Gather<'static> {
        match self {
            Self::Nd { .. } => Gather::nd(0),
            Self::Along { axis } => Gather::along(axis.cast_signed()),
            Self::Elements { axis } => Gather::elements(axis.cast_signed()),
        }
    }
}

fn number_of(at: &[usize], shape: &[usize]) -> usize {
    at.iter()
        .zip(shape)
        .fold(0, |number, (&at, &size)| number * size + at)
}

/// Returns every index of `shape` in row-major order.
fn every(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &size in shape {
        let longer = |at: &Vec<usize>| {
            let at = at.clone();
            (0..size).map(move |next| [&at[..], &[next]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The method of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    InPlace,
    WriteInto,
    Planned,
    Gather,
}

/// The kind of view of the output.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Raw,
    Uninit,
    New,
}

#[derive(Debug)]
struct Case {
    operator: Operator,
    method: Method,
    kind: Kind,
    reduction: Reduction,
    bounds: Bounds,
    execution: Execution<'static>,
    data: Place,
    indices: Place,
    /// Not used by a gather.
    updates: Place,
    output: Place,
}

impl Case {
    /// Draws a case. Returns `None` if a tensor does not fit in the buffer.
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Option<Self>> {
        let dtype = u.choose(&INTEGERS).copied()?;
        let index = u.choose(&INTEGERS).copied()?;
        let methods = [
            Method::InPlace,
            Method::WriteInto,
            Method::Planned,
            Method::Gather,
        ];
        let method = u.choose(&methods).copied()?;
        let kind = u.choose(&[Kind::Raw, Kind::Uninit, Kind::New]).copied()?;
        let reductions = [
            Reduction::None,
            Reduction::Add,
            Reduction::Min,
            Reduction::Max,
        ];
        let reduction = u.choose(&reductions).copied()?;
        let bounds = u.choose(&[Bounds::Error, Bounds::Skip]).copied()?;
        let schedule = u.choose(&Schedule::ALL).copied()?;
        let execution = match u.ratio(1, 2)? {
            true => Execution::new().max_workers(2).force_schedule(schedule),
            false => Execution::new(),
        };
        let rank = u.int_in_range(1..=3)?;
        let shape = (0..rank)
            .map(|_| u.int_in_range(0..=4))
            .collect::<Result<Vec<_>, _>>()?;
        let (operator, list) = Operator::draw(u, &shape)?;
        let listed = operator.listed(&shape, &list);
        let gathers = method == Method::Gather;
        let output = if gathers { &listed } else { &shape };
        let Some(output) = Place::draw(u, dtype, output.clone(), false)? else {
            return Ok(None);
        };
        let same = !gathers && (method == Method::InPlace || u.ratio(1, 3)?);
        let data = match same {
            true => Some(output.clone()),
            false => Place::draw(u, dtype, shape, true)?,
        };
        let indices = Place::draw(u, index, list, true)?;
        let updates = Place::draw(u, dtype, listed, true)?;
        let (Some(data), Some(indices), Some(updates)) = (data, indices, updates) else {
            return Ok(None);
        };
        Ok(Some(Self {
            operator,
            method,
            kind,
            reduction,
            bounds,
            execution,
            data,
            indices,
            updates,
            output,
        }))
    }

    /// Returns the inputs that may not share a byte with the output, in the order of the checks.
    fn inputs(&self) -> Vec<(&'static str, &Place)> {
        let data = ("data", &self.data);
        let (indices, updates) = (("indices", &self.indices), ("updates", &self.updates));
        let in_place = self.method != Method::Gather && self.data.is(&self.output);
        let copied = (!in_place).then_some(data);
        let others = match self.method {
            Method::Gather => vec![indices],
            Method::Planned => vec![updates],
            Method::InPlace | Method::WriteInto => vec![indices, updates],
        };
        copied.into_iter().chain(others).collect()
    }

    /// Returns the buffer after a valid call.
    fn expected(&self, before: &[u8]) -> Vec<u8> {
        let indices = self.indices.read(before);
        let data = self.data.read(before);
        let to = (self.operator).destinations(self.data.shape(), self.indices.shape(), &indices);
        let mut after = before.to_vec();
        let result = if self.method == Method::Gather {
            to.iter().map(|&to| to.map_or(0, |to| data[to])).collect()
        } else {
            let mut result = data;
            for (to, update) in to.iter().zip(self.updates.read(before)) {
                if let Some(to) = *to {
                    result[to] = match self.reduction {
                        Reduction::Add => result[to] + update,
                        Reduction::Min => narrow(result[to], self.data.dtype).min(update),
                        Reduction::Max => narrow(result[to], self.data.dtype).max(update),
                        _ => update,
                    };
                }
            }
            result
        };
        self.output.write(&mut after, &result);
        after
    }

    /// Makes the views of the buffer and calls the method.
    fn run(&self, buffer: &mut [u8]) -> Result<(), ScatterError> {
        let start = buffer.as_mut_ptr();
        // SAFETY: only the call below accesses the buffer.
        let [data, indices, updates] =
            unsafe { [&self.data, &self.indices, &self.updates].map(|place| place.view(start)) };
        let scatter = self.operator.scatter().reduction(self.reduction);
        let scatter = scatter.bounds(self.bounds).execution(self.execution);
        let output = self.view_of_output(start);
        match self.method {
            Method::InPlace => scatter.in_place(output, indices, updates),
            Method::WriteInto => scatter.write_into(data, indices, updates, output),
            Method::Planned => {
                let plan = scatter.plan(self.output.layout(), indices)?;
                let run = plan.run().execution(self.execution);
                run.write_into(data, updates, output)
            }
            Method::Gather => {
                let gather = self.operator.gather().bounds(self.bounds);
                let gather = gather.execution(self.execution);
                gather.write_into(data, indices, output)
            }
        }
    }

    fn view_of_output(&self, start: *mut u8) -> AnyViewMut<'_> {
        let (dtype, layout) = (self.output.dtype, self.output.layout());
        let ptr = start.wrapping_add(self.output.first);
        // SAFETY: `Place::draw` puts all elements into the buffer, whose bytes are initialised. Only
        // the call that gets the view accesses them.
        let view = unsafe {
            match self.kind {
                Kind::Raw | Kind::New => AnyViewMut::from_raw_parts(ptr, dtype, layout),
                Kind::Uninit => AnyViewMut::uninit_from_raw_parts(ptr, dtype, layout),
            }
        };
        let view = view.expect("elements that share no memory");
        match self.kind {
            Kind::New => view.of_new_memory(),
            _ => view,
        }
    }

    /// Checks the result of the call against the rules of shared memory and of bounds.
    fn check(&self, got: &Result<(), ScatterError>, indices: &[i128]) {
        let inside = self.operator.is_in_bounds(self.data.shape(), indices);
        let refused = self.bounds == Bounds::Error && !inside;
        let is_refusal = matches!(got, Err(ScatterError::IndexOutOfBounds { .. }));
        // The plan is made before the views are compared.
        if refused && (self.method == Method::Planned || is_refusal) {
            assert!(is_refusal, "{got:?}, {self:?}");
            if self.method == Method::Planned {
                return;
            }
        }
        let written = self.output.bytes();
        for (tensor, place) in self.inputs() {
            let shares = !written.is_disjoint(&place.bytes());
            match got {
                Err(ScatterError::OverlapUndecided { tensor: named }) if *named == tensor => {
                    let dims = self.output.geometry.long_dims() + place.geometry.long_dims();
                    assert!(dims > 3, "undecided: {self:?}");
                    return;
                }
                Err(ScatterError::InputOverlap { tensor: named }) if *named == tensor => {
                    assert!(shares, "{tensor}: {self:?}");
                    return;
                }
                _ => assert!(!shares, "{tensor}, {got:?}: {self:?}"),
            }
        }
        let uninit = self.method == Method::InPlace && self.kind == Kind::Uninit;
        match got {
            Ok(()) => assert!(!refused && !uninit, "{self:?}"),
            Err(ScatterError::Uninitialized) => assert!(uninit, "{self:?}"),
            Err(other) => assert!(refused && is_refusal, "{other}: {self:?}"),
        }
    }
}

/// Returns the number that the type stores for the low bits of `number`.
fn narrow(number: i128, dtype: DType) -> i128 {
    integer(&bytes_of(number, dtype.size()), dtype)
}

/// Draws a case, runs it and checks the result.
pub(crate) fn call(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let Some(case) = Case::draw(u)? else {
        return Ok(());
    };
    let mut words = [0_u64; BYTES / 8];
    let buffer: &mut [u8] = cast_slice_mut(&mut words);
    u.fill_buffer(buffer)?;
    if u.ratio(7, 8)? {
        let count = case.indices.elements().len();
        let numbers = (0..count).map(|_| u.int_in_range(-5_i128..=4));
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        let numbers: Vec<i128> = match is_signed(case.indices.dtype) {
            true => numbers,
            false => numbers.into_iter().map(i128::abs).collect(),
        };
        case.indices.write(buffer, &numbers);
    }
    let before = buffer.to_vec();
    let got = case.run(buffer);
    case.check(&got, &case.indices.read(&before));
    let mut after = before.clone();
    match got {
        Ok(()) => after = case.expected(&before),
        // The elements of new memory have any values after an error.
        Err(_) if case.kind == Kind::New => {
            (case.output.bytes().into_iter()).for_each(|at| after[at] = buffer[at]);
        }
        Err(_) => {}
    }
    assert!(*buffer == after[..], "{case:?}");
    Ok(())
}
