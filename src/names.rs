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

/// Returns the value that has the spelling `name`. The comparison ignores ASCII case, and a space,
/// `_` and `-` are equal.
pub(crate) fn find<T: Copy>(
    option: &'static str,
    table: &Table<T>,
    name: &str,
) -> Result<T, UnknownName> {
    let has_name = |spellings: &[&str]| spellings.iter().any(|spelling| is_same(spelling, name));
    let found = table.iter().find(|(_, spellings)| has_name(spellings));
    found.map(|&(value, _)| value).ok_or_else(|| UnknownName {
        option,
        name: name.to_owned(),
        known: table.iter().map(|(_, spellings)| spellings[0]).collect(),
    })
}

/// Whether two names are equal, apart from ASCII case and from the separators of their words.
fn is_same(name: &str, other: &str) -> bool {
    let folded = |byte: u8| match byte {
        b'_' | b'-' => b' ',
        byte => byte.to_ascii_lowercase(),
    };
    name.bytes().map(folded).eq(other.bytes().map(folded))
}

/// Implements `ALL`, `as_str`, `Display` and `FromStr` for the type of an option. The table lists
/// the values in the order of their declaration. Each row has the value, its name, and other
/// spellings that `FromStr` accepts.
macro_rules! named {
    ($type:ident, $option:literal: $($value:ident => $name:literal $(| $other:literal)*,)*) => {
        impl $type {
            /// All values, in the order of their declaration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// The table of names, in the order of `ALL`.
            pub(crate) const NAMES: &'static crate::names::Table<Self> =
                &[$((Self::$value, &[$name $(, $other)*])),*];

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
            /// ASCII case, and a space, `_` and `-` are equal.
            #[inline]
            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    // Fast path for exact names: a small call through an adapter parses several
                    // names.
                    $($name => Ok(Self::$value),)*
                    _ => crate::names::find($option, Self::NAMES, name),
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

    use super::{Table, UnknownName};
    use crate::{
        Accumulate, Bounds, CacheMode, DType, Duplicates, Format, Goal, InstructionSet,
        NoneGradient, Reduction, Rounding, Scaling, Schedule,
    };

    fn check<T>(names: &Table<T>)
    where
        T: Copy + Debug + Display + PartialEq + FromStr<Err = UnknownName>,
    {
        let unknown = T::from_str("no such name").expect_err("an unknown name");
        for (position, &(value, spellings)) in names.iter().enumerate() {
            assert_eq!(value.to_string(), spellings[0], "the name of the value");
            assert_eq!(
                unknown.known[position], spellings[0],
                "the error lists the name"
            );
            for spelling in spellings {
                let variants = [
                    (*spelling).to_owned(),
                    spelling.to_ascii_uppercase(),
                    spelling.replace(' ', "_"),
                    spelling.replace(' ', "-"),
                    spelling.replace('_', " "),
                ];
                for variant in variants {
                    assert_eq!(variant.parse(), Ok(value), "{variant}");
                }
            }
        }
    }

    #[test]
    fn names_round_trip() {
        check(Accumulate::NAMES);
        check(Bounds::NAMES);
        check(CacheMode::NAMES);
        check(DType::NAMES);
        check(Duplicates::NAMES);
        check(Format::NAMES);
        check(Goal::NAMES);
        check(InstructionSet::NAMES);
        check(NoneGradient::NAMES);
        check(Reduction::NAMES);
        check(Rounding::NAMES);
        check(Scaling::NAMES);
        check(Schedule::NAMES);
    }

    /// Checks that the page of semantics has the row of each value, with all its names in their
    /// order.
    fn check_documented<T: Copy + Debug>(option: &str, names: &Table<T>) {
        let page = include_str!("../docs/semantics.md");
        for (value, spellings) in names {
            let row = format!("| `{option}::{value:?}` | `{}` |", spellings.join("`, `"));
            assert!(page.contains(&row), "docs/semantics.md has no row {row}");
        }
    }

    #[test]
    fn the_page_of_semantics_lists_all_names() {
        check_documented("Reduction", Reduction::NAMES);
        check_documented("Bounds", Bounds::NAMES);
        check_documented("Duplicates", Duplicates::NAMES);
        check_documented("Accumulate", Accumulate::NAMES);
        check_documented("NoneGradient", NoneGradient::NAMES);
        check_documented("CacheMode", CacheMode::NAMES);
        check_documented("Goal", Goal::NAMES);
        check_documented("Format", Format::NAMES);
        check_documented("Rounding", Rounding::NAMES);
        check_documented("Scaling", Scaling::NAMES);
    }

    #[test]
    fn names_that_no_rule_has() {
        // These modes of numpy (`wrap`), JAX (`fill`) and TensorFlow (`default`) have no equal rule.
        for name in ["wrap", "fill", "default", "skipnegative", "skip negative "] {
            assert!(name.parse::<Bounds>().is_err(), "{name}");
        }
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
