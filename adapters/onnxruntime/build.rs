//! Sets the linker arguments of the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // A host may use registered operators until the process ends.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
