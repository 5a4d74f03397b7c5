//! Sets the linker arguments of the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // `nodelete` keeps the library loaded until the process ends, because a host may use the
        // registered operators until then.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
