//! Passes an argument to the linker of the extension module.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // ONNX Runtime keeps pointers to the custom operators of this library until the process
        // ends. `nodelete` therefore prevents `dlclose` from unloading the library.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
