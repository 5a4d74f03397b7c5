//! How the library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // Operators that were given to ONNX Runtime stay as long as the process.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
