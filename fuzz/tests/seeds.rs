//! Runs the seeds of each fuzz target, and inputs that are derived from them, without libFuzzer.
//!
//! This test runs where libFuzzer does not: under Miri, under ThreadSanitizer, and on other
//! processors under qemu. `tests/sanitizers.sh` has the commands.
//!
//! The derived inputs are the same in every run. For slow runs, the variable `DERIVED_INPUTS` changes
//! their number for each target, and `MOST_SEEDS` limits the number of seeds.

#[path = "../../tests/common/random.rs"]
#[allow(dead_code, reason = "the tests of the crate use more of this module")]
mod random;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use random::Random;

/// Number of derived inputs for each target, without the variable. Miri is slow.
const DERIVED: usize = if cfg!(miri) { 4 } else { 400 };
/// The longest derived input, in bytes.
const LONGEST: usize = 600;

/// Allocates memory with an alignment of 16 bytes, as malloc does. The targets rely on it. Without
/// this allocator, Miri allocates bytes at odd addresses.
#[cfg(miri)]
mod allocator {
    use std::alloc::{GlobalAlloc, Layout, System};

    struct Aligned;

    /// Returns the layout with an alignment of at least 16 bytes.
    fn align(layout: Layout) -> Layout {
        layout.align_to(16).expect("a layout that is not too large")
    }

    // SAFETY: `System` allocates all memory. `align` returns the same layout for the same argument,
    // so memory is freed with the layout with which it was allocated.
    unsafe impl GlobalAlloc for Aligned {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller guarantees that the size is not 0.
            unsafe { System.alloc(align(layout)) }
        }

        unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
            // SAFETY: the caller guarantees that `alloc` returned `ptr` for this layout.
            unsafe { System.dealloc(ptr, align(layout)) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Aligned = Aligned;
}

/// Returns the seeds of a target with their names, in the order of the names.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target);
    let files = fs::read_dir(&folder).expect("the folder of the seeds");
    let mut seeds: Vec<_> = files
        .map(|file| {
            let file = file.expect("a seed");
            let name = file.file_name().to_string_lossy().into_owned();
            (name, fs::read(file.path()).expect("a seed"))
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{target} has seeds");
    seeds
}

fn byte(random: &mut Random) -> u8 {
    u8::try_from(random.below(256)).expect("a number below 256")
}

/// Returns arbitrary bytes, or a seed in which some bytes are changed.
fn derive(seeds: &[(String, Vec<u8>)], random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 {
        let len = random.below(LONGEST);
        return (0..len).map(|_| byte(random)).collect();
    }
    let mut bytes = seeds[random.below(seeds.len())].1.clone();
    for _ in 0..=random.below(8) {
        if !bytes.is_empty() {
            let at = random.below(bytes.len());
            bytes[at] = byte(random);
        }
    }
    bytes
}

/// Returns the number in an environment variable, or `usual` without the variable.
fn number(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(number) => number.parse().expect("the variable is a number"),
        Err(_) => usual,
    }
}

/// Runs a target on its seeds, and then on the derived inputs.
fn replay(target: &str, fuzz: fn(&[u8])) {
    let run = |name: &str, bytes: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| fuzz(bytes))) {
            eprintln!("{target} fails on {name}: {bytes:?}");
            resume_unwind(panic);
        }
    };
    let seeds = seeds(target);
    for (name, bytes) in seeds.iter().take(number("MOST_SEEDS", usize::MAX)) {
        run(&format!("the seed {name}"), bytes);
    }
    let mut random = Random::new(1);
    for number in 0..number("DERIVED_INPUTS", DERIVED) {
        let bytes = derive(&seeds, &mut random);
        run(&format!("the derived input {number}"), &bytes);
    }
}

/// Writes a test for each target.
macro_rules! targets {
    ($($(#[$condition:meta])? $target:ident),* $(,)?) => {
        $(
            $(#[$condition])?
            #[test]
            fn $target() {
                replay(stringify!($target), ndscatter_fuzz::$target::fuzz);
            }
        )*

        #[test]
        fn each_folder_of_seeds_has_a_test() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
            for entry in fs::read_dir(folder).expect("the folder of the seeds") {
                let name = entry.expect("a folder").file_name();
                let tested = [$(stringify!($target)),*];
                assert!(tested.iter().any(|target| name == **target), "{name:?}");
            }
        }
    };
}

targets!(
    c_interface,
    conversions,
    gather,
    gradients,
    machine_file,
    #[cfg(feature = "npy")]
    npy,
    plans,
    scatter,
    views
);
