//! Programs in C and C++ that are compiled against the header and the shared
//! library, as a host would, and run.

#![cfg(unix)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program to build and run.
struct Program<'a> {
    /// Names the executable.
    name: &'a str,
    compiler: &'a str,
    flags: &'a [&'a str],
    /// Files, and folders of which all sources belong to it.
    sources: &'a [&'a str],
}

const C: &[&str] = &[
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pthread",
];
const CPP: &[&str] = &["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread"];

/// A folder with the shared library under both of its names, the one that is
/// linked and the one that is loaded, as an installation has it. Cargo puts the
/// library beside the test.
fn installed(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libndscatter_c.so");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-lib"));
    std::fs::create_dir_all(&folder).expect("a folder for the library");
    for name in ["libndscatter_c.so", "libndscatter_c.so.1"] {
        let link = folder.join(name);
        // Left over from an earlier run, or not there.
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link).expect("a link to the library");
    }
    folder
}

fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    let mut sources: Vec<PathBuf> = std::fs::read_dir(path)
        .expect("a folder of sources")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension() == Some(OsStr::new("c")))
        .collect();
    sources.sort();
    sources
}

impl Program<'_> {
    fn build_and_run(&self, defines: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = installed(self.name);
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.name);
        let compiled = Command::new(self.compiler)
            .args(self.flags)
            .args(defines)
            .arg("-I")
            .arg(root.join("include"))
            .args((self.sources.iter()).flat_map(|path| sources(&root.join(path))))
            .arg("-L")
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", library.display()))
            .args(["-lndscatter_c", "-lm", "-o"])
            .arg(&program)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.compiler));
        let messages = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{}: {messages}", self.name);
        let ran = Command::new(&program)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(
            ran.status.success(),
            "{}: {}{}",
            self.name,
            said[0],
            said[1]
        );
    }
}

const TEST: Program<'_> = Program {
    name: "test",
    compiler: "cc",
    flags: C,
    sources: &["tests/c"],
};

#[test]
fn the_interface_with_the_structs_of_the_header() {
    TEST.build_and_run(&["-DNDS_NO_DLPACK_HEADER"]);
}

/// With `<dlpack/dlpack.h>` where the machine has it.
#[test]
fn the_interface_with_the_header_of_dlpack() {
    Program {
        name: "test-dlpack",
        ..TEST
    }
    .build_and_run(&[]);
}

#[test]
fn the_example_in_c() {
    Program {
        name: "example-c",
        sources: &["examples/example.c"],
        ..TEST
    }
    .build_and_run(&["-Wpedantic"]);
}

#[test]
fn the_example_in_cpp() {
    Program {
        name: "example-cpp",
        compiler: "c++",
        flags: CPP,
        sources: &["examples/example.cpp"],
    }
    .build_and_run(&[]);
}

/// Stands in for the allocator of glibc, by the names that it has there.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn memory_that_is_refused_never_ends_the_process() {
    Program {
        name: "memory",
        sources: &["tests/memory", "tests/c/check.c"],
        ..TEST
    }
    .build_and_run(&["-DNDS_NO_DLPACK_HEADER"]);
}

/// Stands in for `pthread_create`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn threads_that_are_refused_are_asked_for_again() {
    Program {
        name: "threads",
        sources: &["tests/threads", "tests/c/check.c", "tests/c/large.c"],
        ..TEST
    }
    .build_and_run(&["-DNDS_NO_DLPACK_HEADER"]);
}
