//! The contract of views about the bytes that they show. No safe call copies a foreign byte into a
//! Rust `bool`, or reads memory that was never written.
//!
//! The cases are small and run on the calling thread. They also run under Miri: `cargo +nightly
//! miri test --test it -- contracts::`.

#![allow(
    unsafe_code,
    reason = "views of foreign memory are made by unsafe calls"
)]

use std::mem::MaybeUninit;

use ndscatter::{
    AnyView, AnyViewMut, Bounds, DType, Execution, Gather, Layout, Pool, Reduction, Scatter,
    ScatterError, TensorView, TensorViewMut,
};

/// Two bytes. The first is not a valid Rust `bool`.
const FOREIGN: [u8; 2] = [2, 0];

fn foreign<'a>(bytes: &'a [u8], shape: &'a [usize]) -> AnyView<'a> {
    let layout = Layout::contiguous(shape);
    // SAFETY: every shape in these tests has the length of its slice, and the slice is borrowed for
    // the lifetime of the view.
    let view = unsafe { AnyView::from_raw_parts(bytes.as_ptr(), DType::Bool, layout) };
    view.expect("bytes are aligned")
}

fn foreign_mut<'a>(bytes: &'a mut [u8], shape: &'a [usize]) -> AnyViewMut<'a> {
    let layout = Layout::contiguous(shape);
    // SAFETY: every shape in these tests has the length of its slice, and the slice is borrowed
    // mutably for the lifetime of the view.
    let view = unsafe { AnyViewMut::from_raw_parts(bytes.as_mut_ptr(), DType::Bool, layout) };
    view.expect("bytes are aligned")
}

fn rust_mut(data: &mut [bool; 4]) -> AnyViewMut<'_> {
    (TensorViewMut::contiguous(data, &[4]).expect("four")).into()
}

/// Two tuples: positions 2 and 0 of four.
fn indices() -> AnyView<'static> {
    TensorView::contiguous(&[2_i64, 0], &[2, 1])
        .expect("two tuples")
        .into()
}

const REFUSED: fn(&'static str) -> Result<(), ScatterError> =
    |tensor| Err(ScatterError::ForeignBool { tensor });

#[test]
fn foreign_booleans_are_not_moved_to_rust() {
    let updates = foreign(&FOREIGN, &[2]);
    let plan = Scatter::nd()
        .plan(Layout::contiguous(&[4]), indices())
        .expect("a plan");
    let mut data = [true, false, true, false];
    let before = data;

    let got = Scatter::nd().in_place(rust_mut(&mut data), indices(), updates);
    assert_eq!(got, REFUSED("updates"), "in place");
    let got = plan.run().in_place(rust_mut(&mut data), updates);
    assert_eq!(got, REFUSED("updates"), "planned");

    let rust = TensorView::contiguous(&[true, false], &[2])
        .expect("two")
        .into();
    let four = foreign(&[2, 2, 2, 2], &[4]);
    let got = Scatter::nd().write_into(four, indices(), rust, rust_mut(&mut data));
    assert_eq!(got, REFUSED("data"), "copied");
    let got = plan.run().write_into(four, rust, rust_mut(&mut data));
    assert_eq!(got, REFUSED("data"), "copied, planned");

    let mut pair = [true; 2];
    let output = TensorViewMut::contiguous(&mut pair, &[2]).expect("two");
    let output = AnyViewMut::from(output);
    let places = TensorView::contiguous(&[1_i64, 0], &[2]).expect("two");
    let got = Gather::along(0).write_into(four, places, output);
    assert_eq!(got, REFUSED("data"), "gathered");
    let plan = Gather::along(0)
        .plan(Layout::contiguous(&[4]), places)
        .expect("a plan");
    let output = TensorViewMut::contiguous(&mut pair, &[2]).expect("two");
    let output = AnyViewMut::from(output);
    assert_eq!(
        plan.run().write_into(four, output),
        REFUSED("data"),
        "gathered, planned"
    );
    assert_eq!(
        (data, pair),
        (before, [true; 2]),
        "the output was written before the error"
    );
}

/// A call that combines bytes, and does not move them unchanged, may read foreign booleans.
#[test]
fn foreign_booleans_may_be_combined_with_rust_booleans() {
    let mut data = [false, false, true, false];
    for (reduction, expected) in [
        (Reduction::Add, [false, false, true, false]),
        (Reduction::Sub, [false, false, false, false]),
        (Reduction::Max, [false, false, true, false]),
        (Reduction::Mul, [false, false, true, false]),
    ] {
        for include_self in [true, false] {
            let mut data = data;
            let scatter = Scatter::nd()
                .reduction(reduction)
                .include_self(include_self);
            let view = TensorViewMut::contiguous(&mut data, &[4]).expect("four");
            let done = scatter.in_place(AnyViewMut::from(view), indices(), foreign(&FOREIGN, &[2]));
            done.expect("no byte is moved unchanged");
            // The test reads bytes, because the compiler assumes that a `bool` is 0 or 1.
            let bytes: &[u8] = bytemuck::cast_slice(&data);
            assert!(
                bytes.iter().all(|&byte| byte <= 1),
                "{reduction}: {bytes:?}"
            );
            if include_self {
                assert_eq!(data, expected, "{reduction}");
            } else {
                let updates_alone = [false, false, true, false];
                assert_eq!(data, updates_alone, "{reduction} without self");
            }
            assert!(
                data.iter().all(|&value| u8::from(value) <= 1),
                "{reduction}: 0 or 1"
            );
        }
    }
    // Rust's booleans may be written to foreign memory.
    let rust = TensorView::contiguous(&[true, false], &[2])
        .expect("two")
        .into();
    let mut bytes = [2, 2, 2, 2];
    let done = Scatter::nd().in_place(foreign_mut(&mut bytes, &[4]), indices(), rust);
    done.expect("booleans are valid foreign bytes");
    assert_eq!(bytes, [0, 2, 1, 2], "the other bytes are unchanged");
    // A view of Rust's booleans contains only valid booleans.
    let shape = [4];
    let output = TensorViewMut::contiguous(&mut data, &shape).expect("four");
    let mut output = AnyViewMut::from(output);
    let done = Scatter::nd().in_place(output.reborrow(), indices(), rust);
    done.expect("booleans into booleans");
}

#[test]
fn foreign_booleans_move_among_themselves() {
    let mut bytes = [7, 7, 7, 7];
    let output = foreign_mut(&mut bytes, &[4]);
    let done = Scatter::nd().in_place(output, indices(), foreign(&FOREIGN, &[2]));
    done.expect("bytes to bytes");
    assert_eq!(bytes, [0, 7, 2, 7], "the bytes are moved unchanged");
}

/// Returns an output of uninitialised memory.
fn uninit<'a>(memory: &'a mut [MaybeUninit<f32>], shape: &'a [usize]) -> AnyViewMut<'a> {
    let (ptr, layout) = (memory.as_mut_ptr().cast(), Layout::contiguous(shape));
    // SAFETY: every shape in these tests has the length of its slice, and the slice is borrowed
    // mutably for the lifetime of the view.
    let view = unsafe { AnyViewMut::uninit_from_raw_parts(ptr, DType::F32, layout) };
    view.expect("floats are aligned")
}

#[test]
fn uninitialised_memory_is_not_read() {
    let mut memory = [MaybeUninit::uninit(); 4];
    let updates = TensorView::contiguous(&[1.0_f32, 2.0], &[2])
        .expect("two")
        .into();
    let plan = Scatter::nd()
        .plan(Layout::contiguous(&[4]), indices())
        .expect("a plan");
    for reduction in Reduction::ALL {
        let refused = Err(ScatterError::Uninitialized);
        let scatter = Scatter::nd().reduction(reduction);
        let got = scatter.in_place(uninit(&mut memory, &[4]), indices(), updates);
        assert_eq!(got, refused, "{reduction}");
        let run = plan.run().reduction(reduction);
        let got = run.in_place(uninit(&mut memory, &[4]), updates);
        assert_eq!(got, refused, "{reduction}, planned");
    }
}

/// An output that a call only writes is written completely.
#[test]
fn outputs_that_are_only_written() {
    let data = TensorView::contiguous(&[9.0_f32; 4], &[4])
        .expect("four")
        .into();
    let updates = TensorView::contiguous(&[1.0_f32, 2.0], &[2])
        .expect("two")
        .into();
    let read = |memory: [MaybeUninit<f32>; 4]| {
        // SAFETY: the call that succeeded has written all four elements.
        memory.map(|element| unsafe { element.assume_init() })
    };
    for (reduction, expected) in [
        (Reduction::None, [2.0, 9.0, 1.0, 9.0]),
        (Reduction::Add, [11.0, 9.0, 10.0, 9.0]),
        (Reduction::Mean, [5.5, 9.0, 5.0, 9.0]),
    ] {
        let scatter = Scatter::nd().reduction(reduction);
        let mut memory = [MaybeUninit::uninit(); 4];
        let done = scatter.write_into(data, indices(), updates, uninit(&mut memory, &[4]));
        done.expect("the output is only written");
        assert_eq!(read(memory), expected, "{reduction}");
        let plan = scatter
            .plan(Layout::contiguous(&[4]), indices())
            .expect("a plan");
        let mut memory = [MaybeUninit::uninit(); 4];
        let done = plan
            .run()
            .write_into(data, updates, uninit(&mut memory, &[4]));
        done.expect("the output is only written");
        assert_eq!(read(memory), expected, "{reduction}, planned");
    }
    let mut memory = [MaybeUninit::uninit(); 4];
    let places = TensorView::contiguous(&[1_i64, 7, 0, -9], &[4]).expect("four");
    let gather = Gather::along(0).bounds(Bounds::Skip);
    let done = gather.write_into(data, places, uninit(&mut memory, &[4]));
    done.expect("skipped indices read zeros");
    assert_eq!(read(memory), [9.0, 0.0, 9.0, 0.0], "gathered");
}

/// An output at the address of data contains data, so it is initialised.
#[test]
fn an_output_that_is_data_is_initialised() {
    let mut memory = [MaybeUninit::new(5.0_f32); 4];
    let ptr: *mut u8 = memory.as_mut_ptr().cast();
    let layout = Layout::contiguous(&[4]);
    // SAFETY: the pointer is to four initialised floats. Only the call accesses them while the
    // views exist.
    let views = unsafe {
        (
            AnyView::from_raw_parts(ptr, DType::F32, layout),
            AnyViewMut::uninit_from_raw_parts(ptr, DType::F32, layout),
        )
    };
    let updates = TensorView::contiguous(&[1.0_f32, 2.0], &[2])
        .expect("two")
        .into();
    let (data, output) = (views.0.expect("aligned"), views.1.expect("aligned"));
    let scatter = Scatter::nd().reduction(Reduction::Add);
    let done = scatter.write_into(data, indices(), updates, output);
    done.expect("in place");
    // SAFETY: all four elements were initialised at their creation.
    let values = memory.map(|element| unsafe { element.assume_init() });
    assert_eq!(values, [7.0, 5.0, 6.0, 5.0], "in place");
}

/// A small call never calls a method of its pool.
#[test]
fn small_calls_leave_the_pool_alone() {
    struct Asleep;
    impl Pool for Asleep {
        fn workers(&self) -> Option<usize> {
            panic!("a small call requested the workers")
        }

        fn run(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {
            panic!("a small call started tasks")
        }
    }
    let execution = Execution::new().pool(&Asleep);
    let data = TensorView::contiguous(&[9.0_f32; 4], &[4]).expect("four");
    let rows = TensorView::contiguous(&[2_i64, 0, 2], &[3, 1]).expect("three");
    let updates = TensorView::contiguous(&[1.0, 2.0, 3.0], &[3]).expect("three");
    let none = TensorView::<i64>::contiguous(&[], &[0, 1]).expect("no tuples");
    let no_updates = TensorView::contiguous(&[], &[0]).expect("no updates");
    for reduction in Reduction::ALL {
        for include_self in [true, false] {
            let scatter = (Scatter::nd().reduction(reduction))
                .include_self(include_self)
                .execution(execution);
            let done = scatter.allocate(data, rows, updates);
            done.expect("no worker is needed");
            let done = scatter.allocate(data, none, no_updates);
            assert_eq!(done.expect("no worker is needed"), [9.0; 4], "a copy");
            let plan = scatter.plan(data.layout(), rows).expect("a plan");
            let done = plan.run().execution(execution).allocate(data, updates);
            done.expect("no worker is needed");
        }
    }
    let gather = Gather::along(0).execution(execution);
    let places = TensorView::contiguous(&[3_u8, 0], &[2]).expect("two");
    let gathered = gather.allocate(data, places).expect("no worker is needed");
    assert_eq!(gathered, [9.0; 2], "gathered");
}
