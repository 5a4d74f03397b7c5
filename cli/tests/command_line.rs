//! Tests that run the program `scatter_npy` as a user does. They check the files that it writes,
//! its reports, and its errors, which are one line on standard error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The character that stands for this machine's byte order in an `.npy` header. `SWAPPED` stands
/// for the opposite byte order.
const NATIVE: char = if cfg!(target_endian = "little") {
    '<'
} else {
    '>'
};
const SWAPPED: char = if NATIVE == '<' { '>' } else { '<' };

/// The element types of `.npy` files that the program supports. Each entry has the name of the
/// type, the size of one number in bytes, and the count of numbers per element (2 for complex
/// types).
const ELEMENT_TYPES: [(&str, usize, usize); 14] = [
    ("b1", 1, 1),
    ("i1", 1, 1),
    ("i2", 2, 1),
    ("i4", 4, 1),
    ("i8", 8, 1),
    ("u1", 1, 1),
    ("u2", 2, 1),
    ("u4", 4, 1),
    ("u8", 8, 1),
    ("f2", 2, 1),
    ("f4", 4, 1),
    ("f8", 8, 1),
    ("c8", 4, 2),
    ("c16", 8, 2),
];

/// The folder of the files of one test. The program runs in this folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the target folder is writable");
        Self(path)
    }

    fn store(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).expect("the folder is writable");
    }

    fn load(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).expect("the program wrote it")
    }

    /// Stores three files: data `[0, 0, 0, 0, 0]`, three tuples with the indices 3, 0 and 3, and
    /// their updates 1, 2 and 3.
    fn store_three_tuples(&self) {
        self.store("D.npy", npy("<f4", false, "(5,)", &[0; 20]));
        self.store("I.npy", npy("<i8", false, "(3, 1)", &le(&[3_i64, 0, 3])));
        self.store("U.npy", npy("<f4", false, "(3,)", &le(&[1_f32, 2., 3.])));
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_scatter_npy"))
            .args(arguments.split_whitespace())
            .current_dir(&self.0)
            .output()
            .expect("the program can be started")
    }

    fn succeeds(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {complaint}");
        String::from_utf8(output.stdout).expect("the report is text")
    }

    /// Checks that a run fails with exit code 1 or 2, prints one line that contains all `facts`,
    /// and leaves no new file.
    fn fails(&self, arguments: &str, facts: &[&str]) {
        let files = self.files();
        let output = self.run(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        // A program that panics has exit code 101. A program that a signal ends has no exit code.
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{arguments}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(complaint.starts_with("error: "), "{complaint}");
        for fact in facts {
            assert!(complaint.contains(fact), "{fact} not in: {complaint}");
        }
        assert_eq!(self.files(), files, "{arguments}: files");
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("the folder is readable");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        files
    }
}

const FILES: &str = "--data D.npy --indices I.npy --updates U.npy";
const TO_FILE: &str = "--data D.npy --indices I.npy --updates U.npy --out O.npy";

/// Returns the bytes of an `.npy` file of format version 1.0.
fn npy(descr: &str, fortran: bool, shape: &str, payload: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).expect("a short header");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(length.to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(payload);
    file
}

/// Returns the little-endian bytes of the numbers.
fn le<T: num_traits::ToBytes>(values: &[T]) -> Vec<u8> {
    let bytes = values.iter().map(|value| value.to_le_bytes());
    bytes.flat_map(|bytes| bytes.as_ref().to_vec()).collect()
}

/// Returns the numbers of `width` bytes each, with the bytes of each number reversed.
fn swap(bytes: &[u8], width: usize) -> Vec<u8> {
    let words = bytes.chunks_exact(width);
    words.flat_map(|word| word.iter().rev().copied()).collect()
}

/// Checks that the `.npy` file `file` has the element type `descr`, the header entry
/// `fortran_order` with the value `fortran`, and the elements `payload` at its end.
fn check_npy(file: &[u8], descr: &str, fortran: &str, payload: &[u8], case: &str) {
    let (header, elements) = file.split_at(file.len() - payload.len());
    let header = String::from_utf8_lossy(header);
    assert!(header.contains(&format!("'{descr}'")), "{case}: {header}");
    let order = format!("'fortran_order': {fortran}");
    assert!(header.contains(&order), "{case}: {header}");
    assert_eq!(elements, payload, "{case}");
}

#[test]
fn every_element_type_in_both_byte_orders() {
    let folder = Folder::new("element_types");
    folder.store_three_tuples();
    for (name, width, words) in ELEMENT_TYPES {
        let size = width * words;
        // Three updates. All their bytes differ, except for bools, whose bytes can only be 0 or 1.
        let updates: Vec<u8> = match name {
            "b1" => vec![0, 1, 1],
            _ => (1..).take(3 * size).collect(),
        };
        let element = |position: usize| &updates[position * size..][..size];
        let zero = vec![0; size];
        let expected = [element(1), &zero, &zero, element(2), &zero].concat();
        let native = if width == 1 { '|' } else { NATIVE };
        for order in [NATIVE, SWAPPED] {
            let descr = format!("{}{name}", if width == 1 { '|' } else { order });
            let payload = if order == NATIVE {
                updates.clone()
            } else {
                swap(&updates, width)
            };
            folder.store("D.npy", npy(&descr, false, "(5,)", &vec![0; 5 * size]));
            folder.store("U.npy", npy(&descr, false, "(3,)", &payload));
            folder.succeeds(TO_FILE);
            let result = folder.load("O.npy");
            let descr_out = format!("{native}{name}");
            check_npy(&result, &descr_out, "False", &expected, &descr);
        }
    }
}

#[test]
fn every_index_type_in_both_byte_orders() {
    let folder = Folder::new("index_types");
    folder.store_three_tuples();
    let expected = le(&[2_f32, 0., 0., 4., 0.]);
    for (name, width, _) in ELEMENT_TYPES {
        if !name.starts_with(['i', 'u']) {
            continue;
        }
        for order in ['<', '>'] {
            let mut indices = vec![0; 3 * width];
            for (tuple, index) in [(0, 3), (1, 0), (2, 3)] {
                let low = if order == '<' { 0 } else { width - 1 };
                indices[tuple * width + low] = index;
            }
            let descr = format!("{}{name}", if width == 1 { '|' } else { order });
            folder.store("I.npy", npy(&descr, false, "(3, 1)", &indices));
            folder.succeeds(&format!("{TO_FILE} --reduction sum"));
            let result = folder.load("O.npy");
            check_npy(&result, "<f4", "False", &expected, &descr);
        }
    }
}

#[test]
fn fortran_order_and_an_axis() {
    let folder = Folder::new("fortran");
    // Data is [[1, 2, 3], [4, 5, 6]] in Fortran order. The same updates are stored in C order and
    // in Fortran order.
    let data = le(&[1_i32, 4, 2, 5, 3, 6]);
    folder.store("D.npy", npy("<i4", true, "(2, 3)", &data));
    folder.store("I.npy", npy("<i2", false, "(2,)", &le(&[2_i16, 0])));
    let by_rows = npy("<i4", false, "(2, 2)", &le(&[30_i32, 10, 60, 40]));
    let by_columns = npy("<i4", true, "(2, 2)", &le(&[30_i32, 60, 10, 40]));
    // The result is [[11, 2, 33], [44, 5, 66]] in Fortran order, because data has this order.
    let expected = le(&[11_i32, 44, 2, 5, 33, 66]);
    for updates in [by_rows, by_columns] {
        folder.store("U.npy", updates);
        for options in ["--axis 1", "--axis -1", "--axis 1 --in-place"] {
            let arguments = format!("{TO_FILE} --reduction add --op scatter_update {options}");
            folder.succeeds(&arguments);
            check_npy(&folder.load("O.npy"), "<i4", "True", &expected, options);
        }
    }
    // `--check` compares elements with the same index, so a result in Fortran order can equal an
    // expected file in C order.
    let expected = le(&[11_i32, 2, 33, 44, 5, 66]);
    folder.store("E.npy", npy("<i4", false, "(2, 3)", &expected));
    folder.succeeds(&format!(
        "{FILES} --reduction add --op scatter_update --axis 1 --check E.npy"
    ));
}

#[test]
fn degenerate_shapes() {
    let folder = Folder::new("degenerate");
    // k = 0: indices of shape [0] hold one tuple without coordinates. Its window is all of data,
    // a tensor of rank 0.
    folder.store("D.npy", npy("<f4", false, "()", &le(&[1_f32])));
    folder.store("I.npy", npy("<i8", false, "(0,)", &[]));
    folder.store("U.npy", npy("<f4", false, "()", &le(&[7_f32])));
    folder.succeeds(TO_FILE);
    check_npy(
        &folder.load("O.npy"),
        "<f4",
        "False",
        &le(&[7_f32]),
        "k = 0",
    );
    // Indices without tuples: the result equals data.
    folder.store("I.npy", npy("<i8", false, "(0, 0)", &[]));
    folder.store("U.npy", npy("<f4", false, "(0,)", &[]));
    folder.succeeds(TO_FILE);
    check_npy(
        &folder.load("O.npy"),
        "<f4",
        "False",
        &le(&[1_f32]),
        "N = 0",
    );
}

#[test]
fn the_result_may_replace_data_at_any_number_of_threads() {
    let folder = Folder::new("replace");
    for threads in [1, 2, 3, 8] {
        folder.store_three_tuples();
        let arguments = "--reduction add --out D.npy --explain --threads";
        let report = folder.succeeds(&format!("{FILES} {arguments} {threads}"));
        assert!(report.contains("schedule"), "explained: {report}");
        let expected = le(&[2_f32, 0., 0., 4., 0.]);
        let result = folder.load("D.npy");
        check_npy(&result, "<f4", "False", &expected, &threads.to_string());
    }
}

#[test]
fn the_digits_are_added_up() {
    let folder = Folder::new("digits");
    let report = folder.succeeds("--check");
    assert!(report.contains("to the bit"), "checked: {report}");
    assert!(report.contains("CC BY 4.0"), "attributed: {report}");
    let pictures = report.lines().filter(|line| line.contains('█'));
    let widths = pictures.map(|line| line.chars().count());
    assert!(widths.max().is_some_and(|width| width <= 80), "{report}");
    folder.fails("--check --reduction max", &["expected.npy", "[0, 0, 1]"]);
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new("bad_files");
    folder.store_three_tuples();
    let whole = npy("<f4", false, "(3,)", &le(&[1_f32, 2., 3.]));
    let huge = "(4294967296, 4294967296, 4294967296)";
    let nested = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let cases: [(&str, Vec<u8>, &str); 10] = [
        // The time of a parser that tries each bracket twice is exponential.
        (
            "nested header",
            npy("<f4", false, &nested, &[]),
            "nest too deeply",
        ),
        // Nothing follows the length of this header. The program allocates no memory for it.
        (
            "long header",
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
            "4294967295 bytes",
        ),
        ("text", b"1, 2, 3".to_vec(), "not an .npy file"),
        ("empty file", vec![], "not an .npy file"),
        (
            "elements cut off",
            whole[..whole.len() - 1].to_vec(),
            "ends",
        ),
        ("strings", npy("<U3", false, "(3,)", &[0; 36]), "'<U3'"),
        (
            "dates",
            npy("<M8[ns]", false, "(3,)", &[0; 24]),
            "'<M8[ns]'",
        ),
        ("objects", npy("|O", false, "(3,)", &[0; 24]), "'|O'"),
        (
            "no such bool",
            npy("|b1", false, "(3,)", &[0, 1, 2]),
            "bool",
        ),
        ("huge shape", npy("<f4", false, huge, &[]), "4294967296"),
    ];
    for (case, bytes, fact) in cases {
        let name = format!("{}.npy", case.replace(' ', "_"));
        folder.store(&name, bytes);
        let arguments = format!("--data D.npy --indices I.npy --updates {name} --out O.npy");
        folder.fails(&arguments, &[&name, fact]);
    }
    // The first eight bytes of an `.npy` file identify the format. The last 12 bytes of this file
    // are its elements. All bytes before them are the header.
    let header = whole.len() - 12;
    for kept in 0..header {
        folder.store("cut.npy", &whole[..kept]);
        let fact = match kept {
            0..8 => "not an .npy file",
            _ => "ends inside its .npy header",
        };
        folder.fails(&format!("{TO_FILE} --check cut.npy"), &["cut.npy", fact]);
    }
    let missing = [
        "--data missing.npy --indices I.npy --updates U.npy --out O.npy",
        "--data D.npy --indices missing.npy --updates U.npy --out O.npy",
        "--data D.npy --indices I.npy --updates missing.npy --out O.npy",
        "--data D.npy --indices I.npy --updates U.npy --out O.npy --check missing.npy",
    ];
    for arguments in missing {
        folder.fails(arguments, &["missing.npy"]);
    }
}

#[test]
fn files_that_cannot_be_written() {
    let folder = Folder::new("bad_outputs");
    folder.store_three_tuples();
    for out in ["no/such/folder.npy", "."] {
        folder.fails(&format!("{FILES} --out {out}"), &[out, "written"]);
    }
}

/// A disk without space is a limit of 512 or 1024 bytes for files. The result has 4 KiB.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::new("full_disk");
    folder.store_three_tuples();
    folder.store("D.npy", npy("<f4", false, "(1024,)", &[0; 4096]));
    folder.store("O.npy", "the old file");
    let files = folder.files();
    // With the trap, a write beyond the limit fails. Without it, a signal ends the program.
    for trap in ["trap '' XFSZ;", ""] {
        let limited = format!("{trap} ulimit -c 0; ulimit -f 1; exec \"$0\" {TO_FILE}");
        let output = Command::new("sh")
            .args(["-c", &limited, env!("CARGO_BIN_EXE_scatter_npy")])
            .current_dir(&folder.0)
            .output()
            .expect("the program can be started");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(folder.load("O.npy"), b"the old file", "{trap}");
        if trap.is_empty() {
            assert_eq!(output.status.code(), None, "ended by the signal");
        } else {
            assert_eq!(output.status.code(), Some(1), "{complaint}");
            assert!(complaint.starts_with("error: O.npy: cannot be written: "));
            assert_eq!(folder.files(), files, "no new file");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_space_is_an_error() {
    let folder = Folder::new("full_device");
    folder.store_three_tuples();
    folder.fails(
        &format!("{FILES} --out /dev/full"),
        &["/dev/full: cannot be written: No space left"],
    );
    // The report, on standard output.
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_scatter_npy"))
        .args(TO_FILE.split_whitespace())
        .current_dir(&folder.0)
        .stdout(full.expect("Linux has this device"))
        .output()
        .expect("the program can be started");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    let expected = "error: the report cannot be written: No space left";
    assert!(complaint.starts_with(expected), "{complaint}");
}

#[test]
fn command_lines_with_mistakes() {
    let folder = Folder::new("bad_arguments");
    folder.store_three_tuples();
    let cases = [
        ("--reduction median", "\"median\""),
        (
            "--op scatter",
            "scatter_nd, scatter_update, scatter_elements",
        ),
        ("--op scatter_update", "--axis"),
        ("--op scatter_elements", "--axis"),
        ("--batch-dims 1", "gather_nd"),
        ("--bounds wrap", "error, skip, clamp or skip negative"),
        ("--op gather --axis 0", "--updates"),
        ("--axis 0", "scatter_update"),
        ("--op scatter_update --axis 1", "axis 1"),
        ("--threads 0", "1..=1024"),
        ("--check", "--check"),
        ("--in_place", "--in_place"),
    ];
    for (options, fact) in cases {
        folder.fails(&format!("{TO_FILE} {options}"), &[fact]);
    }
    folder.fails("--data D.npy --out O.npy", &["--indices"]);
    let no_updates = "--data D.npy --indices I.npy --out O.npy";
    folder.fails(no_updates, &["scatter_nd", "--updates"]);
    folder.fails(FILES, &["--out"]);
    folder.fails("--op gather_nd", &["gather_nd", "--data"]);
    for option in ["--reduction add", "--reject-duplicates", "--in-place"] {
        let name = option.split(' ').next().expect("a name");
        let arguments = format!("{no_updates} --op gather_nd {option}");
        folder.fails(&arguments, &["gather_nd", name]);
    }
}

#[test]
fn help_lists_operators_reductions_and_bounds() {
    let help = Folder::new("help").succeeds("--help");
    let words = [
        "scatter_elements",
        "gather_elements",
        "max or mean",
        "clamp",
        "skip-negative",
    ];
    for word in words {
        assert!(help.contains(word), "{word} not in: {help}");
    }
}

#[test]
fn every_operator() {
    let folder = Folder::new("operators");
    // Data is [[1, 2, 3], [4, 5, 6]].
    let data = npy("<i4", false, "(2, 3)", &le(&[1_i32, 2, 3, 4, 5, 6]));
    folder.store("D.npy", &data);
    folder.store("U.npy", npy("<i4", false, "(2, 1)", &le(&[70_i32, 80])));
    folder.store("I.npy", npy("<i8", false, "(2, 1)", &le(&[2_i64, -3])));
    folder.store("L.npy", npy("<i8", false, "(2,)", &le(&[1_i64, 0])));
    let gather = "--data D.npy --indices I.npy --out O.npy --op";
    let row = "--data D.npy --indices L.npy --out O.npy --op gather --axis 0";
    let pairs = format!("{gather} gather_nd --batch-dims 1");
    let cases: [(&str, &str, &[i32]); 6] = [
        (
            "--op scatter_elements --axis 1",
            "[2, 3]",
            &[1, 2, 70, 80, 5, 6],
        ),
        (
            "--op scatter_elements --axis -1 --reduction mean",
            "[2, 3]",
            &[1, 2, 36, 42, 5, 6],
        ),
        (row, "[2, 3]", &[4, 5, 6, 1, 2, 3]),
        (
            &format!("{gather} gather --axis 1"),
            "[2, 2, 1]",
            &[3, 1, 6, 4],
        ),
        (
            &format!("{gather} gather_elements --axis 1"),
            "[2, 1]",
            &[3, 4],
        ),
        (&pairs, "[2]", &[3, 4]),
    ];
    for (options, shape, expected) in cases {
        let arguments = if options.starts_with("--op") {
            format!("{TO_FILE} {options}")
        } else {
            options.to_owned()
        };
        let report = folder.succeeds(&arguments);
        let result = folder.load("O.npy");
        check_npy(&result, "<i4", "False", &le(expected), options);
        let wrote = format!("wrote i32 {shape} to O.npy");
        assert!(report.contains(&wrote), "{options}: {report}");
        assert!(report.contains("to run"), "{options}: {report}");
        // The report has the bytes per second, in a unit for which the number is not 0.00.
        assert!(report.contains("B/s of "), "{options}: {report}");
        assert!(!report.contains(": 0.00"), "{options}: {report}");
    }
}

#[test]
fn indices_out_of_bounds_and_duplicates() {
    let folder = Folder::new("bounds");
    folder.store_three_tuples();
    let store = |values: &[i64; 3]| {
        folder.store("I.npy", npy("<i8", false, "(3, 1)", &le(values)));
    };
    let cases: [(&str, [i64; 3], [f32; 5], &str); 6] = [
        ("--bounds skip", [9, -1, 0], [3., 0., 0., 0., 2.], "1 tuple"),
        (
            "--bounds skip --forbid-negative",
            [9, -1, 0],
            [3., 0., 0., 0., 0.],
            "2 tuple",
        ),
        (
            "--bounds skip-negative --forbid-negative",
            [4, -1, 0],
            [3., 0., 0., 0., 1.],
            "1 tuple",
        ),
        ("--bounds clamp", [9, -9, 1], [2., 3., 0., 0., 1.], "to run"),
        // The names of JAX and torch for skip and add.
        (
            "--bounds drop --reduction sum",
            [9, -1, 4],
            [0., 0., 0., 0., 5.],
            "1 tuple",
        ),
        (
            "--bounds clamp --forbid-negative --reduction add",
            [9, -1, 0],
            [5., 0., 0., 0., 1.],
            "to run",
        ),
    ];
    for (options, indices, expected, fact) in cases {
        store(&indices);
        let report = folder.succeeds(&format!("{TO_FILE} {options}"));
        assert!(report.contains(fact), "{options}: {report}");
        check_npy(
            &folder.load("O.npy"),
            "<f4",
            "False",
            &le(&expected),
            options,
        );
    }
    store(&[1, -1, 2]);
    let forbidden = format!("{FILES} --out P.npy --forbid-negative");
    folder.fails(&forbidden, &["index -1 of tuple 1"]);
    store(&[4, 2, -1]);
    let duplicates = format!("{FILES} --out P.npy --reject-duplicates");
    folder.fails(&duplicates, &["tuple 2", "tuple 0"]);
    store(&[4, 2, -2]);
    folder.succeeds(&format!("{TO_FILE} --reject-duplicates"));
}

#[test]
fn tensors_that_do_not_fit() {
    let folder = Folder::new("bad_tensors");
    folder.store_three_tuples();
    let indices = |values: &[i64]| npy("<i8", false, "(3, 1)", &le(values));
    let updates = npy("<f4", false, "(2,)", &le(&[1_f32, 2.]));
    let cases: [(&str, Vec<u8>, &[&str]); 6] = [
        (
            "I",
            indices(&[3, 5, 9]),
            &["tuple 1", "axis 0", "index 5", "size 5"],
        ),
        (
            "I",
            indices(&[0, 1, i64::MIN]),
            &["tuple 2", "-9223372036854775808"],
        ),
        (
            "I",
            npy("<f4", false, "(3, 1)", &[0; 12]),
            &["`indices`", "f32"],
        ),
        (
            "I",
            npy("<i8", false, "(3, 2)", &[0; 48]),
            &["2 coordinates", "rank 1"],
        ),
        ("U", updates, &["`updates`", "[2]", "[3]"]),
        (
            "U",
            npy("<f8", false, "(3,)", &[0; 24]),
            &["`updates`", "f64", "f32"],
        ),
    ];
    for (tensor, bytes, facts) in cases {
        folder.store_three_tuples();
        folder.store(&format!("{tensor}.npy"), bytes);
        folder.fails(TO_FILE, facts);
        folder.fails(&format!("{TO_FILE} --in-place"), facts);
    }
    // Indices of rank 1 are one tuple of three coordinates for scatter_nd, and three positions for
    // scatter_update.
    folder.store_three_tuples();
    let positions = npy("<i8", false, "(3,)", &le(&[3_i64, 0, 3]));
    folder.store("I.npy", positions);
    let hint = ["one tuple of 3 coordinates", "`scatter_update`", "[3, 1]"];
    folder.fails(TO_FILE, &hint);
    folder.succeeds(&format!("{TO_FILE} --op scatter_update --axis 0"));

    folder.store_three_tuples();
    folder.store("D.npy", npy("<c8", false, "(5,)", &[0; 40]));
    folder.store("U.npy", npy("<c8", false, "(3,)", &[0; 24]));
    folder.fails(&format!("{TO_FILE} --reduction min"), &["min", "complex64"]);
}
