//! numpy's names of element types and formats, for casts and for error messages.

use ndscatter::{DType, Format};

/// Returns numpy's name of a dtype. A dtype that numpy does not have gets a name of the same form,
/// such as `bfloat16`.
pub(crate) fn numpy_name(dtype: DType) -> String {
    match (dtype, dtype.as_str()) {
        (DType::Bool | DType::Complex64 | DType::Complex128, name) => name.to_owned(),
        (DType::BF16, _) => "bfloat16".to_owned(),
        (_, name) => {
            let name = name.replace('u', "uint").replace('f', "float");
            match name.strip_prefix('i') {
                Some(bits) => format!("int{bits}"),
                None => name,
            }
        }
    }
}

/// Returns numpy's name of a format. A format that is no dtype of numpy keeps its name, such as
/// `float8_e4m3fn`.
pub(crate) fn format_name(format: Format) -> String {
    let name = format.as_str();
    name.parse().map_or_else(|_| name.to_owned(), numpy_name)
}
