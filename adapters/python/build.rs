//! Linker arguments of the extension module.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // ONNX Runtime keeps pointers to the operators until the process ends, so the library must
        // not be unloaded.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
