//! Tests that compile C and C++ programs with the header, link them to the shared library and run
//! them, as a host does.

#![cfg(unix)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that a test builds and runs.
struct Program<'a> {
    /// Name of the executable.
    name: &'a str,
    compiler: &'a str,
    flags: &'a [&'a str],
    /// Paths of source files and of folders. Every C file in such a folder is a source file.
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

/// Returns a folder with two links to the shared library, for the two names that an installation
/// has: the name that the linker uses, and the soname that the program loads. Cargo builds the
/// library into the folder of the test executable.
fn installed(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libndscatter_c.so");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-lib"));
    std::fs::create_dir_all(&folder).expect("a folder for the library");
    for name in ["libndscatter_c.so", "libndscatter_c.so.1"] {
        let link = folder.join(name);
        // Removes a link of an earlier run. This fails if there is none.
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

/// The program includes `<dlpack/dlpack.h>` if this header is installed.
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

/// The program replaces the memory allocation functions of glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_failed_allocation_never_ends_the_process() {
    Program {
        name: "memory",
        sources: &["tests/memory", "tests/c/check.c"],
        ..TEST
    }
    .build_and_run(&["-DNDS_NO_DLPACK_HEADER"]);
}

/// The program replaces the function `pthread_create`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn refused_threads_are_requested_again() {
    Program {
        name: "threads",
        sources: &["tests/threads", "tests/c/check.c", "tests/c/large.c"],
        ..TEST
    }
    .build_and_run(&["-DNDS_NO_DLPACK_HEADER"]);
}

/// The program loads the library itself. With `--as-needed`, the linker does not add the library to
/// the libraries that are loaded at the start.
#[cfg(target_os = "linux")]
#[test]
fn calls_after_dlclose() {
    Program {
        name: "unload",
        sources: &["tests/unload"],
        ..TEST
    }
    .build_and_run(&["-DNDS_NO_DLPACK_HEADER", "-Wl,--as-needed"]);
}
