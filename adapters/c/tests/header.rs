//! Checks that the committed header is the header that cbindgen generates from the sources.
//!
//! After a change of the interface, this command writes the header:
//! `NDS_WRITE_HEADER=1 cargo test -p ndscatter-c --test header`

use std::fs;
use std::path::Path;

#[test]
fn the_committed_header_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .expect("cbindgen reads the sources");
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let generated = String::from_utf8(generated).expect("a text");
    let path = root.join("include/ndscatter.h");
    if std::env::var_os("NDS_WRITE_HEADER").is_some() {
        fs::write(&path, &generated).expect("a folder that can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is stale; write it again with NDS_WRITE_HEADER=1",
        path.display()
    );
}
