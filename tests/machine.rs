//! The machine that calls go by: that of the environment, or the one that was set.
//!
//! In a program of its own, as both are the whole process's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use ndscatter::{DType, Execution, Explanation, Layout, Machine, MachineError, Pool};
use ndscatter::{Reduction, Scatter};
use ndscatter::{TensorView, TensorViewMut};

/// Set for the child process of a test.
const CHILD: &str = "NDSCATTER_TEST_CHILD";

/// Has two workers, one after the other.
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

/// What a call of 16 MiB does, and its result.
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

/// A file in the folder of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

/// What the test `child` says in a process with this environment.
fn said_with(path: &Path) -> String {
    let this = std::env::current_exe().expect("a test has a path");
    let ran = Command::new(this)
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, "1")
        .env("NDSCATTER_MACHINE", path)
        .output()
        .expect("a test runs");
    let said = String::from_utf8(ran.stdout).expect("text");
    assert!(ran.status.success(), "{said}");
    said
}

/// No test of its own, but for the processes that others start.
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

/// The largest file that is read.
const MOST_BYTES: usize = 64 << 10;

/// Why `path` cannot be used. Fails where the answer takes longer than a file does.
fn refused(path: &Path) -> String {
    let (sender, answer) = mpsc::channel();
    let named = path.to_owned();
    // Not joined: a thread that waits for a FIFO would never end.
    std::thread::spawn(move || {
        // Nobody listens any more once the test has failed.
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
fn what_is_no_regular_file_is_refused_and_harmless() {
    let fifo = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fifo");
    // One of an earlier run may be there.
    let _ = std::fs::remove_file(&fifo);
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success(), "a FIFO");
    // The last one has no end.
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
fn one_that_is_set_is_used_and_changes_no_bit() {
    let (_, expected) = call();
    let (divided, alone) = (("wake = 1", true), ("wake = 1e11", false));
    // One that was set before is set again as a new one is.
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
