//! Names of the values of an option: the text that `Display` prints, and the texts that `FromStr`
//! reads.
//!
//! This module knows texts. This module does not know what a value means. The macro `named!` has
//! the table of the names of one option. The table follows the declaration of the option's type.

/// The error for a text that is not the name of any value of an option.
///
/// # Examples
///
/// ```
/// use ndscatter::Bounds;
///
/// let unknown = "wrap".parse::<Bounds>().expect_err("not a rule for bounds");
/// assert_eq!(
///     unknown.to_string(),
///     "no rule for bounds is called \"wrap\"; use error, skip, clamp or skip negative",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {option} is called {name:?}; use {}", one_of(known))]
#[non_exhaustive]
pub struct UnknownName {
    /// Description of the option, such as "rule for bounds".
    pub option: &'static str,
    /// The text that was read.
    pub name: String,
    /// The names of all values of the option, in the order of their declaration. Other spellings
    /// that `FromStr` accepts are not included.
    pub known: Vec<&'static str>,
}

/// Joins names into a text such as "a, b or c".
fn one_of(names: &[&str]) -> String {
    match names {
        [first @ .., before, last] if !first.is_empty() => {
            format!("{}, {before} or {last}", first.join(", "))
        }
        names => names.join(" or "),
    }
}

/// Table of the values of an option. Each value has at least one spelling. The first spelling is
/// the name of the value.
pub(crate) type Table<T> = [(T, &'static [&'static str])];

/// Returns the value that has the spelling `name`. The comparison ignores ASCII case.
pub(crate) fn find<T: Copy>(
    option: &'static str,
    table: &Table<T>,
    name: &str,
) -> Result<T, UnknownName> {
    let has_name = |spellings: &[&str]| spellings.iter().any(|s| s.eq_ignore_ascii_case(name));
    let found = table.iter().find(|(_, spellings)| has_name(spellings));
    found.map(|&(value, _)| value).ok_or_else(|| UnknownName {
        option,
        name: name.to_owned(),
        known: table.iter().map(|(_, spellings)| spellings[0]).collect(),
    })
}

/// Implements `ALL`, `as_str`, `Display` and `FromStr` for the type of an option. The table lists
/// the values in the order of their declaration. Each row has the value, its name, and other
/// spellings that `FromStr` accepts.
macro_rules! named {
    ($type:ident, $option:literal: $($value:ident => $name:literal $(| $other:literal)*,)*) => {
        impl $type {
            /// All values, in the order of their declaration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// Returns the name of the value. [`from_str`](std::str::FromStr::from_str) converts
            /// this name back to the value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::names::UnknownName;

            /// Returns the value whose name or other spelling is `name`. The comparison ignores
            /// ASCII case.
            #[inline]
            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let table: &crate::names::Table<Self> =
                    &[$((Self::$value, &[$name $(, $other)*])),*];
                match name {
                    // Fast path for exact names: a small call through an adapter parses several
                    // names.
                    $($name => Ok(Self::$value),)*
                    _ => crate::names::find($option, table, name),
                }
            }
        }
    };
}

pub(crate) use named;

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    use super::UnknownName;
    use crate::{
        Accumulate, Bounds, CacheMode, DType, Duplicates, Format, Goal, InstructionSet,
        NoneGradient, Reduction, Rounding, Scaling, Schedule,
    };

    fn check<T>(values: &[T])
    where
        T: Copy + Debug + Display + PartialEq + FromStr<Err = UnknownName>,
    {
        for (position, &value) in values.iter().enumerate() {
            let name = value.to_string();
            assert_eq!(name.parse(), Ok(value), "the name of the value");
            assert_eq!(name.to_ascii_uppercase().parse(), Ok(value), "in capitals");
            let unknown = T::from_str("no such name").expect_err("an unknown name");
            assert_eq!(unknown.known[position], name, "the error lists the name");
        }
    }

    #[test]
    fn names_round_trip() {
        check(&Accumulate::ALL);
        check(&Bounds::ALL);
        check(&CacheMode::ALL);
        check(&DType::ALL);
        check(&Duplicates::ALL);
        check(&Format::ALL);
        check(&Goal::ALL);
        check(&InstructionSet::ALL);
        check(&NoneGradient::ALL);
        check(&Reduction::ALL);
        check(&Rounding::ALL);
        check(&Scaling::ALL);
        check(&Schedule::ALL);
    }

    #[test]
    fn the_first_value_is_the_default() {
        assert_eq!(Accumulate::ALL[0], Accumulate::default());
        assert_eq!(Bounds::ALL[0], Bounds::default());
        assert_eq!(CacheMode::ALL[0], CacheMode::default());
        assert_eq!(Duplicates::ALL[0], Duplicates::default());
        assert_eq!(NoneGradient::ALL[0], NoneGradient::default());
        assert_eq!(Reduction::ALL[0], Reduction::default());
        assert_eq!(Rounding::ALL[0], Rounding::default());
        assert_eq!(Scaling::ALL[0], Scaling::default());
    }

    #[test]
    fn an_error_lists_the_names() {
        let text_of = |unknown: UnknownName| unknown.to_string();
        let cases = [
            (
                text_of("median".parse::<Reduction>().expect_err("no reduction")),
                "no reduction is called \"median\"; use none, add, sub, mul, min, max or mean",
            ),
            (
                text_of("".parse::<Goal>().expect_err("no goal")),
                "no goal is called \"\"; use latency or throughput",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }
}
