//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // Its threads live as long as the process: it must stay loaded.
        for argument in ["-Wl,-soname,libndscatter_c.so.1", "-Wl,-z,nodelete"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
