//! Makes views of every kind from arbitrary shapes, strides, offsets and buffers.
//!
//! - A constructor accepts exactly the layouts that a computation in 128-bit integers accepts. The
//!   errors have the documented kinds ([`constructors`]).
//! - A call reads and writes exactly the elements that the same computation enumerates.
//! - Data, indices, updates and output lie in one buffer. A call fails exactly if its output shares a
//!   byte with an input, and else gives the result of a sequential loop ([`shared`]).
//! - Every comparison covers the whole buffer, so a write beside the view is a failure.

mod constructors;
mod shared;

use arbitrary::Unstructured;

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(data: &[u8]) {
    // The result is `Err` if the bytes end too early. Such an input is no case.
    let _ = run(&mut Unstructured::new(data));
}

fn run(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    match u.int_in_range(0..=9)? {
        0 => constructors::slices::<u8>(u),
        1 => constructors::slices::<u16>(u),
        2 => constructors::slices::<u32>(u),
        3 => constructors::slices::<u64>(u),
        4 => constructors::splats(u),
        5 | 6 => constructors::bytes(u),
        _ => shared::call(u),
    }
}
