//! The comparison of the harness. It finds the first difference, at every position.

use crate::common::elements::compare;

/// Returns the message for an element that differs.
fn difference(at: usize, got: &str, expected: &str) -> Result<(), String> {
    Err(format!("element {at} is {got}, not {expected}"))
}

#[test]
fn the_first_difference_is_found() {
    for len in 0..40 {
        let expected = vec![0_u8; len];
        assert_eq!(compare(&expected, &expected, true), Ok(()));
        assert!(compare(&expected, &vec![0; len + 1], true).is_err());
        for at in 0..len {
            let mut got = expected.clone();
            (got[at], got[len - 1]) = (1, 1);
            assert_eq!(compare(&got, &expected, true), difference(at, "1", "0"));
        }
    }
}

/// The bits of NaN count only where values are moved. They never hide another difference.
#[test]
fn nan_hides_no_difference() {
    let (nan, other_nan) = (f32::NAN, f32::from_bits(0x7fc0_0001));
    for len in 1..40 {
        let expected = vec![nan; len];
        let mut got = vec![other_nan; len];
        assert_eq!(compare(&got, &expected, false), Ok(()));
        assert_eq!(compare(&got, &expected, true), difference(0, "NaN", "NaN"));
        got[len - 1] = 1.0;
        let last = difference(len - 1, "1.0", "NaN");
        assert_eq!(compare(&got, &expected, false), last);
    }
    let zeros = difference(0, "-0.0", "0.0");
    assert_eq!(compare(&[-0.0_f32], &[0.0], false), zeros);
}
