//! The machine that calls use for the choice of a schedule: the file that the environment names, or
//! the machine that the program set.
//!
//! These tests are a separate binary, because the environment and the machine that is set belong to
//! the whole process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use ndscatter::{DType, Execution, Explanation, Layout, Machine, MachineError, Pool};
use ndscatter::{Reduction, Scatter};
use ndscatter::{TensorView, TensorViewMut};

/// Environment variable that marks the child process of a test.
const CHILD: &str = "NDSCATTER_TEST_CHILD";

/// A pool that reports two workers and runs tasks in order on the calling thread.
struct Two;

impl Pool for Two {
    fn workers(&self) -> Option<usize> {
        Some(2)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

const ROWS: usize = 1 << 16;
const LEN: usize = 64;

/// Explains a call of 16 MiB, runs it, and returns the explanation and the result.
fn call() -> (Explanation, Vec<f32>) {
    let indices: Vec<i64> = (0_i64..).take(ROWS).map(|row| row * 7 % 65_521).collect();
    let indices = TensorView::contiguous(&indices, &[ROWS, 1]).expect("tuples");
    let shape = [ROWS, LEN];
    let scatter = Scatter::nd()
        .reduction(Reduction::Add)
        .execution(Execution::new().pool(&Two));
    let explained = scatter
        .explain(Layout::contiguous(&shape), indices, DType::F32, true)
        .expect("a call");
    let updates: Vec<f32> = (0..ROWS * LEN).map(|at| (at % 1000) as f32).collect();
    let mut data = vec![1.0; ROWS * LEN];
    scatter
        .in_place(
            TensorViewMut::contiguous(&mut data, &shape).expect("data"),
            indices,
            TensorView::contiguous(&updates, &shape).expect("updates"),
        )
        .expect("a call");
    (explained, data)
}

/// Writes a file into the temporary folder of this test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

/// Returns the output of the test `child`, run in a process with this environment.
fn said_with(path: &Path) -> String {
    let this = std::env::current_exe().expect("the test binary has a path");
    let ran = Command::new(this)
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, "1")
        .env("NDSCATTER_MACHINE", path)
        .output()
        .expect("the test binary runs");
    let said = String::from_utf8(ran.stdout).expect("text");
    assert!(ran.status.success(), "{said}");
    said
}

/// Checks nothing. Other tests run it in child processes.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        let (explained, _) = call();
        println!("\n{explained}\ntasks: {}", explained.tasks());
    }
}

#[test]
fn a_named_file_is_used() {
    let fast = "wake = 1\ncaches = 32768 1048576 8388608\n";
    let said = said_with(&file("fast-to-wake", fast));
    assert!(
        said.contains("32, 1024 and 8192 KiB, rates of its own"),
        "{said}"
    );
    assert!(!said.contains("tasks: 1\n"), "{said}");
    assert!(!said.contains("kernels of its own"), "{said}");
    let said = said_with(&file("other-kernels", "near_bytes = 0\n"));
    assert!(said.contains("typical rates, kernels of its own"), "{said}");
    let said = said_with(&file("slow-to-wake", "wake = 1e11\n"));
    assert!(said.contains("tasks: 1\n"), "{said}");
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_harmless() {
    let said = said_with(&file("no-machine", "wake = soon\n"));
    assert!(
        said.contains("typical rates; NDSCATTER_MACHINE: line 1"),
        "{said}"
    );
    let said = said_with(Path::new("no/such/file"));
    assert!(said.contains("NDSCATTER_MACHINE: no/such/file"), "{said}");
}

/// Size of the largest file that is read, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// Returns the error for `path`. Panics if reading takes more than 20 seconds.
fn refused(path: &Path) -> String {
    let (sender, answer) = mpsc::channel();
    let named = path.to_owned();
    // The thread is not joined: a thread that waits for a FIFO would never end.
    std::thread::spawn(move || {
        // The send fails after the test has failed and dropped the receiver.
        let _ = sender.send(Machine::read(named));
    });
    let read = answer.recv_timeout(Duration::from_secs(20));
    let read = read.unwrap_or_else(|_| panic!("{}: still reading", path.display()));
    match read {
        Err(error @ MachineError::File { .. }) => error.to_string(),
        read => panic!("{}: {read:?}", path.display()),
    }
}

#[test]
fn a_file_is_at_most_64_kibibytes() {
    let machine = "wake = 5000\n#";
    let most = machine.to_owned() + &" ".repeat(MOST_BYTES - machine.len());
    let read = Machine::read(file("largest", &most)).expect("64 KiB");
    assert_eq!(read, machine.parse().expect("a machine"));
    let refused = refused(&file("too-large", &(most + " ")));
    assert!(refused.ends_with("larger than 64 KiB"), "{refused}");
}

#[cfg(unix)]
#[test]
fn a_special_file_is_refused_and_harmless() {
    let fifo = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fifo");
    // A FIFO from an earlier run may exist.
    let _ = std::fs::remove_file(&fifo);
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success(), "a FIFO");
    // `/dev/zero` has no end.
    let paths = [
        &fifo,
        Path::new("/dev/null"),
        Path::new("/"),
        Path::new("/dev/zero"),
    ];
    for path in paths {
        let refused = refused(path);
        let expected = format!("{}: not a regular file", path.display());
        assert_eq!(refused, expected);
        let said = said_with(path);
        assert!(
            said.contains(&format!("NDSCATTER_MACHINE: {expected}")),
            "{said}"
        );
    }
}

#[test]
fn a_machine_that_is_set_is_used_and_changes_no_bit() {
    let (_, expected) = call();
    let (divided, alone) = (("wake = 1", true), ("wake = 1e11", false));
    // Setting a machine again has the same effect as setting a new one.
    for (text, is_divided) in [divided, alone, alone, divided] {
        let machine: Machine = text.parse().expect("a machine");
        machine.clone().set_current();
        assert_eq!(Machine::current(), &machine);
        let (explained, result) = call();
        assert_eq!(explained.machine(), &machine);
        assert_eq!(explained.tasks() > 1, is_divided, "{text}: {explained}");
        assert!(result == expected, "{text}");
    }
}

/// Writes the detected machine to the file that the environment names, and prints the result.
/// Another test runs it in child processes.
#[test]
fn child_that_writes() {
    if let Some(path) = std::env::var_os(WRITTEN) {
        let written = Machine::detected().write(path);
        println!("\nwritten: {written:?}");
    }
}

/// Environment variable with the path of the file that a child process writes.
const WRITTEN: &str = "NDSCATTER_TEST_WRITTEN";

/// A limit of 512 or 1024 bytes for files, as a full disk has. Without the trap, the signal `XFSZ`
/// would end the process.
#[cfg(unix)]
const LIMITED: &str = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";

/// Returns the files in `folder`, sorted.
#[cfg(unix)]
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_and_the_old_file_survives() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (old, link, new) = (folder.join("old"), folder.join("link"), folder.join("new"));
    let text = "wake = 5000\n".repeat(3);
    std::fs::write(&old, &text).expect("a file");
    std::os::unix::fs::symlink("old", &link).expect("a link");
    let before = files_in(&folder);
    for path in [&old, &link, &new] {
        let this = std::env::current_exe().expect("the test binary has a path");
        let ran = Command::new("sh")
            .args(["-c", LIMITED])
            .arg(this)
            .args(["--exact", "child_that_writes", "--nocapture"])
            .env(WRITTEN, path)
            .output()
            .expect("the test binary runs");
        let said = String::from_utf8(ran.stdout).expect("text");
        let error = format!("written: Err(File {{ path: {path:?}, source: Os {{ code: 27");
        assert!(said.contains(&error), "{said}");
        assert_eq!(files_in(&folder), before, "no new file, no file less");
        let kept = std::fs::read_to_string(&old).expect("the old file");
        assert_eq!(kept, text, "{}: the old file", path.display());
    }
    // Without the limit, the file behind the link is replaced.
    Machine::detected().write(&link).expect("an empty disk");
    assert!(link.is_symlink(), "the link is kept");
    let read = Machine::read(&old).expect("a machine");
    assert_eq!(&read, Machine::detected(), "the new description");
    assert_eq!(files_in(&folder), before, "no temporary file remains");
    // A link whose file is missing: the write makes the file.
    std::fs::remove_file(&old).expect("the old file");
    Machine::detected().write(&link).expect("an empty disk");
    assert!(link.is_symlink() && old.is_file(), "the link is kept");
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_space_is_an_error() {
    let refused = Machine::detected()
        .write("/dev/full")
        .expect_err("no space");
    let text = refused.to_string();
    assert!(text.starts_with("/dev/full: No space left"), "{text}");
    let kind = std::os::unix::fs::FileTypeExt::is_char_device;
    let device = std::fs::metadata("/dev/full").expect("a device");
    assert!(kind(&device.file_type()), "the device is not replaced");
}
