//! Runs a ScatterND node in onnxruntime through the `ort` crate. The session registers the library
//! `ndscatter_onnxruntime`, which computes the node.
//!
//! ```sh
//! cargo build --release -p ndscatter-onnxruntime
//! cd adapters/onnxruntime/examples/rust
//! export ORT_DYLIB_PATH=/path/to/libonnxruntime.so.1.x.y
//! cargo run -- ../../../../target/release/libndscatter_onnxruntime.so
//! ```

use ort::logging::LogLevel;
use ort::session::Session;
use ort::value::Tensor;

/// The bytes of an ONNX model of one node, output = ScatterND(data, indices, updates) with
/// reduction "add". The input data has 3 rows of 2 floats. `../c/session.c` contains the code that
/// made the bytes.
const MODEL: &[u8] = b"\x08\x09:\xb5\x01\n@\n\x04data\n\x07indices\n\x07updates\x12\x06output\
    \"\tScatterND*\x13\n\treduction\"\x03add\xa0\x01\x03\x12\x07scatter\
    Z\x16\n\x04data\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x03\n\x02\x08\x02\
    Z\x1a\n\x07indices\x12\x0f\n\r\x08\x07\x12\t\n\x03\x12\x01n\n\x02\x08\x01\
    Z\x1a\n\x07updates\x12\x0f\n\r\x08\x01\x12\t\n\x03\x12\x01n\n\x02\x08\x02\
    b\x18\n\x06output\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x03\n\x02\x08\x02\
    B\x04\n\x00\x10\x12";

/// Adds the updates (1, 1), (10, 10) and (100, 100) to a tensor of 3 rows of zeros. Returns the
/// sums. `rows` holds the row index of each update.
fn add_rows(session: &mut Session, rows: [i64; 3]) -> ort::Result<Vec<f32>> {
    let updates = vec![1.0_f32, 1.0, 10.0, 10.0, 100.0, 100.0];
    let outputs = session.run(ort::inputs! {
        "data" => Tensor::from_array(([3, 2], vec![0.0_f32; 6]))?,
        "indices" => Tensor::from_array(([3, 1], rows.to_vec()))?,
        "updates" => Tensor::from_array(([3, 2], updates))?,
    })?;
    let (_, values) = outputs["output"].try_extract_tensor()?;
    Ok(values.to_vec())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let library = std::env::args_os().nth(1);
    let library = library.ok_or("missing argument: the path of libndscatter_onnxruntime.so")?;
    let environment = ort::init().build()?;
    let mut session = Session::builder(&environment)?
        .with_operator_library(library)?
        // onnxruntime logs only fatal errors. Other errors are not logged, because the calls return
        // them.
        .with_log_level(LogLevel::Fatal)?
        .commit_from_memory(MODEL)?;

    // Index -1 means the last row, row 2. Two updates therefore add to row 2.
    let output = add_rows(&mut session, [0, 2, -1])?;
    println!("output: {output:?}");
    assert_eq!(output, [1.0, 1.0, 0.0, 0.0, 110.0, 110.0]);

    // An index out of bounds makes the run fail. The error message contains "ndscatter:", which
    // shows that the library ran the node, not onnxruntime's own operator.
    let error = add_rows(&mut session, [0, 3, 1]).expect_err("row 3 is out of bounds");
    println!("refused: {error}");
    let message = error.to_string();
    assert!(message.contains("ndscatter:"), "the error is not from the library");
    Ok(())
}
