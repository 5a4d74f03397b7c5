//! Tiny calls allocate nothing: the plan is on the stack, and the calling thread does the work.

#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use ndscatter::{
    Bounds, CacheMode, Gather, Layout as Places, Reduction, Scatter, ScatterError, TensorView,
    TensorViewMut, scatter_elements, scatter_nd, scatter_update, tensor_scatter,
};

/// An allocator that counts the allocations of all threads.
struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every method forwards its arguments to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller satisfies the contract of `GlobalAlloc`, and the arguments are
        // forwarded unchanged.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the smallest number of allocations in ten calls. Other calls may be disturbed by the
/// thread of the test harness. A call before them may initialise state of the process.
fn allocations(mut call: impl FnMut() -> Result<(), ScatterError>) -> usize {
    call().expect("the call is valid");
    let once = || {
        let before = COUNT.load(Ordering::Relaxed);
        call().expect("the call is valid");
        COUNT.load(Ordering::Relaxed) - before
    };
    std::iter::repeat_with(once)
        .take(10)
        .min()
        .expect("ten tries")
}

/// Four elements of eight.
fn four_of_eight() -> usize {
    let mut data = [0.0_f32; 8];
    allocations(|| {
        scatter_nd(
            TensorViewMut::contiguous(&mut data, &[8])?,
            TensorView::contiguous(&[4_i64, 3, 1, 7], &[4, 1])?,
            TensorView::contiguous(&[9.0, 10.0, 11.0, 12.0], &[4])?,
            Reduction::Add,
        )
    })
}

/// The largest plan that needs no heap: rank 8, 64 tuples.
fn most_that_fits_inline() -> usize {
    let shape = [2; 8];
    let mut data = [0_i32; 256];
    let indices: [i32; 64 * 6] = std::array::from_fn(|i| i32::from(i % 5 < 2) - 1);
    let updates = [1; 64 * 4];
    allocations(|| {
        scatter_nd(
            TensorViewMut::strided(
                &mut data,
                255,
                &shape,
                &[-128, -64, -32, -16, -8, -4, -2, -1],
            )?,
            TensorView::contiguous(&indices, &[64, 6])?,
            TensorView::contiguous(&updates, &[64, 2, 2])?,
            Reduction::Max,
        )
    })
}

fn along_an_axis() -> usize {
    let mut data = [0_u8; 24];
    allocations(|| {
        scatter_update(
            TensorViewMut::contiguous(&mut data, &[2, 4, 3])?,
            TensorView::contiguous(&[3_u8, 0], &[2])?,
            TensorView::contiguous(&[7; 12], &[2, 2, 3])?,
            1,
            Reduction::None,
        )
    })
}

fn along_an_axis_of_rank_8() -> usize {
    let shape = [1, 2, 1, 2, 64, 1, 2, 1];
    let mut data = [0_f64; 512];
    let indices: [i64; 64] = std::array::from_fn(|i| [5, -64, 63][i % 3]);
    let updates = [1.5; 512];
    allocations(|| {
        Scatter::along(4).reduction(Reduction::Sub).in_place(
            TensorViewMut::contiguous(&mut data, &shape)?,
            TensorView::contiguous(&indices, &[64])?,
            TensorView::contiguous(&updates, &[1, 2, 1, 2, 64, 1, 2, 1])?,
        )
    })
}

fn a_planned_run() -> usize {
    let indices = [2_i64, 0, 2];
    let indices = TensorView::contiguous(&indices, &[3, 1]).expect("three tuples");
    let layout = Places::contiguous(&[4, 5]);
    let plan = Scatter::nd()
        .plan(layout, indices)
        .expect("the indices are valid");
    let mut data = [0_i16; 20];
    let updates = [3; 15];
    allocations(|| {
        plan.run().reduction(Reduction::Mul).in_place(
            TensorViewMut::contiguous(&mut data, &[4, 5])?,
            TensorView::contiguous(&updates, &[3, 5])?,
        )
    })
}

fn writing_into_an_output() -> usize {
    let data = [1_u32; 8];
    let mut output = [0; 8];
    allocations(|| {
        Scatter::nd().write_into(
            TensorView::contiguous(&data, &[8])?,
            TensorView::contiguous(&[4_i64, 4], &[2, 1])?,
            TensorView::contiguous(&[2, 3], &[2])?,
            TensorViewMut::contiguous(&mut output, &[8])?,
        )
    })
}

fn element_by_element() -> usize {
    let mut data = [0.0_f32; 12];
    allocations(|| {
        scatter_elements(
            TensorViewMut::contiguous(&mut data, &[4, 3])?,
            TensorView::contiguous(&[0_i64, 3, -1, 2, 2, 2], &[2, 3])?,
            TensorView::contiguous(&[1.0; 6], &[2, 3])?,
            0,
            Reduction::Add,
        )
    })
}

fn a_decode_step() -> usize {
    let mut cache = [0.0_f32; 48];
    allocations(|| {
        tensor_scatter(
            TensorViewMut::contiguous(&mut cache, &[2, 2, 4, 3])?,
            Some(TensorView::contiguous(&[3, 1], &[2])?),
            TensorView::contiguous(&[1.0; 12], &[2, 2, 1, 3])?,
            -2,
            CacheMode::Linear,
        )
    })
}

fn gathering() -> usize {
    let data = [7_i16; 24];
    let mut output = [0; 12];
    allocations(|| {
        let data = TensorView::contiguous(&data, &[2, 4, 3])?;
        Gather::along(1).bounds(Bounds::Skip).write_into(
            data,
            TensorView::contiguous(&[3_u8, 9], &[2])?,
            TensorViewMut::contiguous(&mut output, &[2, 2, 3])?,
        )?;
        Gather::nd(1).write_into(
            data,
            TensorView::contiguous(&[3_i64, 0, -1, 2], &[2, 2, 1])?,
            TensorViewMut::contiguous(&mut output, &[2, 2, 3])?,
        )?;
        Gather::elements(-1).write_into(
            data,
            TensorView::contiguous(&[2_i32; 12], &[2, 3, 2])?,
            TensorViewMut::contiguous(&mut output, &[2, 3, 2])?,
        )
    })
}

fn a_planned_gather() -> usize {
    let (data, indices) = ([7_u64; 8], [3_i64, 0, -1]);
    let indices = TensorView::contiguous(&indices, &[3]).expect("three indices");
    let plan = Gather::along(0).plan(Places::contiguous(&[4, 2]), indices);
    let plan = plan.expect("the indices are valid");
    let mut output = [0; 6];
    allocations(|| {
        plan.run().write_into(
            TensorView::contiguous(&data, &[4, 2])?,
            TensorViewMut::contiguous(&mut output, &[3, 2])?,
        )
    })
}

/// Makes a call and returns its number of allocations.
type Case = fn() -> usize;

/// All cases are in one test, so that no other test allocates during a count.
#[test]
fn tiny_calls_allocate_nothing() {
    let cases: [(&str, Case); 10] = [
        ("four of eight elements", four_of_eight),
        ("rank 8, 64 tuples, reversed", most_that_fits_inline),
        ("along an axis", along_an_axis),
        (
            "along an axis of rank 8, 64 tuples",
            along_an_axis_of_rank_8,
        ),
        ("a small plan", a_planned_run),
        ("into an output", writing_into_an_output),
        ("element by element", element_by_element),
        ("a decode step", a_decode_step),
        ("gathers", gathering),
        ("a small plan of a gather", a_planned_gather),
    ];
    // The counter detects an allocation.
    let counted = allocations(|| {
        std::hint::black_box(vec![1_u8; 8]);
        Ok(())
    });
    assert!(counted >= 1, "the counter missed an allocation");
    for (what, allocations) in cases {
        assert_eq!(allocations(), 0, "{what}");
    }
}
