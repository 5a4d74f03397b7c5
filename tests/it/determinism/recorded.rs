//! Checksums of the results of scatters in the table, which `tests/data/bits` records.
//!
//! The bits of results are part of the interface. Programs compare results with the results of an
//! earlier version, so a change of bits needs a release that names it. The file of a group of cases
//! has one line for each result: the reduction, the element type, the position of the case in its
//! group, and a checksum. The checksum is the same for every NaN. `CHANGELOG.md` names the checksum
//! of all files together.
//!
//! This command writes the files: `NDSCATTER_RECORD_BITS=1 cargo test --test it determinism::`. The
//! same command without the variable then prints the checksum for `CHANGELOG.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ndscatter::{DType, Reduction};

use crate::common::elements::{Ref, element_types, is_enabled};
use crate::common::repository;

/// A reduction, an element type and the position of a case in its group.
type Key = (String, String, usize);

/// The checksums of a group of cases.
#[derive(Default)]
pub(super) struct Checksums(BTreeMap<Key, String>);

impl Checksums {
    /// Adds the checksum of the result of a case.
    pub(super) fn add(&mut self, position: usize, value: (Reduction, DType), checksum: u64) {
        let key = (value.0.to_string(), value.1.to_string(), position);
        self.0.insert(key, format!("{checksum:016x}"));
    }

    /// Compares the checksums with the file of the group. Writes the file instead if the environment
    /// asks for it.
    pub(super) fn check(self, group: &str) {
        let file = folder().join(group);
        if is_recording() {
            let lines = self.0.iter();
            let lines = lines.map(|((r, dtype, at), sum)| format!("{r} {dtype} {at} {sum}\n"));
            std::fs::write(file, lines.collect::<String>()).expect("the file can be written");
            return;
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let recorded = parse(&text);
        let different = differences(&self.0, &recorded);
        assert!(
            different.is_empty(),
            "the results of {group} have other bits than the recorded results, or the cases differ \
             (read tests/it/determinism/recorded.rs): {different:?}"
        );
    }
}

/// Whether the tests write the files.
fn is_recording() -> bool {
    std::env::var_os("NDSCATTER_RECORD_BITS").is_some()
}

fn folder() -> PathBuf {
    repository().join("tests/data/bits")
}

/// Parses the lines of a file whose element types and reductions this build has.
fn parse(text: &str) -> BTreeMap<Key, String> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let &[reduction, dtype, position, checksum] = &words[..] else {
            panic!("a line has four words: {line}");
        };
        let reduction: Reduction = reduction.parse().expect("the first word is a reduction");
        let dtype: DType = dtype.parse().expect("the second word is an element type");
        let position = position.parse().expect("the third word is a number");
        let is_known = element_types().contains(&dtype) && is_enabled(reduction, dtype);
        is_known.then(|| {
            (
                (reduction.to_string(), dtype.to_string(), position),
                checksum.to_owned(),
            )
        })
    };
    text.lines().filter_map(parse).collect()
}

/// Returns the keys that only one map has, or whose checksums differ.
fn differences<'m>(
    left: &'m BTreeMap<Key, String>,
    right: &'m BTreeMap<Key, String>,
) -> BTreeSet<&'m Key> {
    let differs = |key: &&Key| left.get(*key) != right.get(*key);
    left.keys().chain(right.keys()).filter(differs).collect()
}

/// Returns the checksum of elements.
pub(super) fn checksum<T: Ref>(elements: &[T]) -> u64 {
    elements.iter().fold(FIRST, |sum, element| {
        let bits = element.bits_of_any_nan();
        add_word(add_word(sum, low_word(bits)), low_word(bits >> 64))
    })
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the conversion of bytes takes longer in test builds, which have few optimisations"
)]
fn low_word(bits: u128) -> u64 {
    bits as u64
}

/// Start of a checksum.
const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds 64 bits to a checksum. Both steps can be undone, so different words give different sums.
fn add_word(sum: u64, word: u64) -> u64 {
    (sum ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

/// Checks that the changelog names the recorded bits, so that no release changes them silently.
#[test]
fn the_changelog_names_the_recorded_bits() {
    // Other tests are writing the files.
    if is_recording() {
        return;
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    let sum = files.iter().fold(FIRST, |sum, file| {
        let text = std::fs::read(file).expect("the file can be read");
        text.iter()
            .fold(sum, |sum, &byte| add_word(sum, byte.into()))
    });
    let name = format!("`{sum:016x}`");
    let changelog = std::fs::read_to_string(repository().join("CHANGELOG.md"));
    let changelog = changelog.expect("the changelog can be read");
    assert!(
        changelog.contains(&name),
        "the recorded bits have changed: CHANGELOG.md must describe the change and name {name}"
    );
}
