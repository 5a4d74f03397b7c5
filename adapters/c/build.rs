//! Sets the linker arguments of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // `nodelete` keeps the library loaded after `dlclose`, because the threads of the library
        // run until the process ends.
        for argument in ["-Wl,-soname,libndscatter_c.so.1", "-Wl,-z,nodelete"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
