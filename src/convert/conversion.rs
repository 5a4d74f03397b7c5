//! The builder of a conversion: the format, the rounding, the scale and the zero point.
//!
//! This module knows options. It does not know tensors other than the scale and the zero point.

use crate::conversion::{Format, Rounding, Scaling};
use crate::operand::AnyView;

/// How a write converts its updates to the elements of data.
///
/// [`Scatter::convert`](crate::Scatter::convert) and [`Write::convert`](crate::Write::convert) use
/// a conversion. Each update is widened to `f32`, scaled, rounded, and stored:
///
/// - **Types.** Updates are `f32`, `f16` or `bf16`. The elements of data are the format. The format
///   of 8-bit floats and of 4-bit integers must be [set](Self::format), because data of type `u8`,
///   `i8` or `bytes1` can hold several formats. Otherwise the format is the element type of data.
/// - **Scale.** With a [scale](Self::scale), an update `x` becomes `x / scale` or `x * (1 / scale)`
///   ([`Scaling`]). The scale is a tensor of `f32` that broadcasts to the shape of the updates. One
///   scale for the whole tensor has the shape `[]`. A scale for each row has the shape
///   `[tokens, 1, 1]`, and a scale for each channel `[heads, dim]`.
/// - **Zero point.** Integers have a [zero point](Self::zero_point), which is added after the
///   rounding.
/// - **Rounding.** [`Rounding`] has the rules of torch, ONNX, and vLLM.
/// - **Packed formats.** Two 4-bit integers are one element of data. The last axis of data is half
///   as long as the last axis of the updates, and is a part of the window.
///
/// | rules of | made by | rounding | scaling |
/// |---|---|---|---|
/// | torch: `(x / scale).to(dtype)`, except `float8_e4m3fn` from 2.12 on | [`new`](Self::new) | `NearestEven` | `Divide` |
/// | torch 2.12 and newer: `(x / scale).to(float8_e4m3fn)` | [`onnx`](Self::onnx) | `Saturate` | `Divide` |
/// | ONNX: Cast with `saturate`, QuantizeLinear | [`onnx`](Self::onnx) | `Saturate` | `Divide` |
/// | ONNX Runtime: caches of GroupQueryAttention | [`onnx_runtime`](Self::onnx_runtime) | `SaturateNan` | `Reciprocal` |
/// | vLLM 0.33: caches of 8-bit floats on CPUs | [`vllm`](Self::vllm) | `SaturateNan` | `Reciprocal` |
///
/// # Examples
///
/// ```
/// use ndscatter::{AnyViewMut, Conversion, DType, Format, Layout, Scatter, TensorView};
///
/// let mut cache = [0_u8; 6];
/// let (scale, keys) = ([0.5_f32], [0.25_f32, -1.0, 300.0, f32::NAN]);
/// let shape = [3, 2];
/// let data = AnyViewMut::from_bytes(&mut cache, DType::U8, Layout::contiguous(&shape))?;
/// let conversion = Conversion::new()
///     .format(Format::F8E4M3Fn)
///     .scale(TensorView::contiguous(&scale, &[])?);
/// Scatter::along(0).convert(conversion).in_place(
///     data,
///     TensorView::from(&[2_i64, 0]),
///     TensorView::contiguous(&keys, &[2, 2])?,
/// )?;
/// // 0.5 and -2 in row 2. 600 is beyond 448, the largest value, and becomes NaN.
/// assert_eq!(cache, [0x7f, 0x7f, 0, 0, 0x30, 0xc0]);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversion<'a> {
    pub(super) format: Option<Format>,
    pub(super) rounding: Rounding,
    pub(super) scaling: Scaling,
    pub(super) scale: Option<AnyView<'a>>,
    pub(super) zero_point: Option<AnyView<'a>>,
}

impl<'a> Conversion<'a> {
    /// Returns a conversion to the element type of data, by [`Rounding::NearestEven`], without a
    /// scale.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a conversion with the rules of ONNX: Cast with `saturate = 1`, and QuantizeLinear.
    ///
    /// # Examples
    ///
    /// ```
    /// use ndscatter::{Conversion, Scatter, TensorView, TensorViewMut};
    ///
    /// // QuantizeLinear: 1.25 / 0.5 is 2.5, which is rounded to 2, and 3 is added.
    /// let (mut data, scale, zero_point) = ([0_u8; 2], [0.5_f32], [3]);
    /// let quantize = Conversion::onnx()
    ///     .scale(TensorView::from(&scale))
    ///     .zero_point(TensorView::from(&zero_point));
    /// Scatter::along(0).convert(quantize).in_place(
    ///     TensorViewMut::from(&mut data),
    ///     TensorView::from(&[1_i64, 0]),
    ///     TensorView::from(&[1.25_f32, 1e6]),
    /// )?;
    /// assert_eq!(data, [255, 5]);
    /// # Ok::<(), ndscatter::ScatterError>(())
    /// ```
    #[inline]
    pub fn onnx() -> Self {
        Self::new().rounding(Rounding::Saturate)
    }

    /// Returns a conversion with the rules of ONNX Runtime for quantised caches
    /// (GroupQueryAttention on CPUs): the reciprocal of the scale multiplies, and NaN becomes the
    /// largest value. Its 4-bit integers are [`Format::U4`] with the zero point 8.
    #[inline]
    pub fn onnx_runtime() -> Self {
        let rounding = Rounding::SaturateNan;
        Self::new().rounding(rounding).scaling(Scaling::Reciprocal)
    }

    /// Returns a conversion with the rules of vLLM 0.33 for caches of 8-bit floats on CPUs: the
    /// reciprocal of the scale multiplies, and NaN becomes the largest value. The format of vLLM's
    /// `fp8` is [`Format::F8E4M3Fn`].
    #[inline]
    pub fn vllm() -> Self {
        Self::onnx_runtime()
    }

    /// Sets the format of the elements of data. By default, the format is the element type of data.
    #[must_use]
    #[inline]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets how a value is rounded to the format.
    #[must_use]
    #[inline]
    pub fn rounding(mut self, rounding: Rounding) -> Self {
        self.rounding = rounding;
        self
    }

    /// Sets whether the scale divides, or its reciprocal multiplies.
    #[must_use]
    #[inline]
    pub fn scaling(mut self, scaling: Scaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Sets the scale: a tensor of `f32` that broadcasts to the shape of the updates, by the rules
    /// of numpy. Every value must be positive and finite. With [`Scaling::Reciprocal`], its
    /// reciprocal must be finite too, so the value is above 2^-128.
    #[must_use]
    #[inline]
    pub fn scale(mut self, scale: impl Into<AnyView<'a>>) -> Self {
        self.scale = Some(scale.into());
        self
    }

    /// Sets the zero point: a tensor of `i32` that broadcasts to the shape of the updates. Every
    /// value must be in the range of the format, which must be an integer format.
    #[must_use]
    #[inline]
    pub fn zero_point(mut self, zero_point: impl Into<AnyView<'a>>) -> Self {
        self.zero_point = Some(zero_point.into());
        self
    }
}
