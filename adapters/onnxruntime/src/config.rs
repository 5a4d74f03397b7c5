//! The config entries of a session: their keys and their values.
//!
//! This module knows the library's config entries, and detects misspelt keys and late entries. It
//! knows nothing of domains.

use std::ffi::CString;
use std::thread;

use ort_sys::{OrtKernelInfo, OrtSessionOptions};

use crate::api::Api;
use crate::definition::{DEFINITIONS, Definition};
use crate::failure::Failure;

/// Key of the config entry that lists the standard operators to replace: names separated by commas.
/// Without this entry, the library replaces all operators of [`DEFINITIONS`].
const OPERATORS: &str = "ndscatter.ops";

/// Key of the config entry that states the number of threads of a session. Without this entry, the
/// library measures the number of threads.
const THREADS: &str = "ndscatter.threads";

/// Key of the config entry that the library adds when a session registers the library. The value is
/// the text of the session's configuration ([`Config::text`]).
const REGISTERED: &str = "ndscatter.registered";

const KEYS: [&str; 3] = [OPERATORS, THREADS, REGISTERED];

/// Name and version of the library.
pub(crate) const LIBRARY: &str = concat!("ndscatter ", env!("CARGO_PKG_VERSION"));

/// The configuration of a session, which determines the operators that the library registers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Config {
    /// For each operator of [`DEFINITIONS`], in the same order, whether the library replaces the
    /// standard operator.
    pub(crate) replaced: [bool; DEFINITIONS.len()],
    /// Number of threads that the config entry [`THREADS`] states. `None` without this entry.
    pub(crate) threads: Option<usize>,
}

impl Config {
    /// Returns the version of the library, the replaced operators and the number of threads as a
    /// text. Equal configurations have equal texts.
    fn text(&self) -> String {
        let pairs = DEFINITIONS.iter().zip(self.replaced);
        let replaced = pairs.filter(|&(_, is_replaced)| is_replaced);
        let names: Vec<_> = replaced.map(|(definition, _)| definition.text()).collect();
        let (names, threads) = (names.join(","), threads_text(self.threads));
        format!("{LIBRARY}, ops: {names}, threads: {threads}")
    }

    /// Returns this configuration with a number of threads that is limited to the number of
    /// processors.
    ///
    /// More threads than processors do not make a run faster. Sessions with different numbers of
    /// threads have separate operators. The operators for one number of threads occupy 69 KB until
    /// the process ends, so the limit also bounds this memory. These sessions cannot share
    /// operators, because the host does not report to which session a kernel belongs. The interface
    /// of onnxruntime 1.18 has no function for this. The library cannot free the operators, because
    /// the host does not report the end of a session.
    ///
    /// The number of processors depends on the calling thread and can change at run time. The text
    /// of a configuration ([`Config::text`]) therefore has the number without the limit.
    pub(crate) fn limited(self) -> Self {
        let limit = |threads: usize| {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            threads.min(processors)
        };
        let threads = self.threads.map(limit);
        Self { threads, ..self }
    }
}

/// Returns the number of threads as a text. `None` means that the library measures the number.
pub(crate) fn threads_text(threads: Option<usize>) -> String {
    threads.map_or_else(|| "measured".to_owned(), |threads| threads.to_string())
}

/// Config entries of a session: keys and values. A host from onnxruntime 1.24 on lists all entries
/// of the session. For an older host, the list contains only the entries with a key that the
/// library asks for.
#[derive(Debug)]
pub(crate) struct Entries(Vec<(String, String)>);

impl Entries {
    /// Reads the config entries of a session's options.
    ///
    /// # Safety
    ///
    /// `options` are valid options of the host.
    pub(crate) unsafe fn read(
        api: Api,
        options: *const OrtSessionOptions,
    ) -> Result<Self, Failure> {
        // SAFETY: the options are valid (contract of this function).
        unsafe {
            if let Some(entries) = api.config_entries(options)? {
                return Ok(Self(entries));
            }
            let mut entries = Vec::new();
            let known = KEYS.into_iter().map(str::to_owned);
            for key in known.chain(likely_misspellings()) {
                let name = CString::new(key.as_str()).unwrap_or_default();
                if let Some(value) = api.config_entry(options, &name)? {
                    entries.push((key, value));
                }
            }
            Ok(Self(entries))
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        let entry = self.0.iter().find(|entry| entry.0 == key);
        entry.map(|(_, value)| value.as_str())
    }

    /// Returns the configuration that the entries specify. Fails if the key of an entry is
    /// misspelt.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        if let Some((key, _)) = self.0.iter().find(|(key, _)| is_misspelt(key)) {
            return Err(Failure::invalid(format_args!(
                "the library has no config entry {key:?}; use {OPERATORS:?} or {THREADS:?}"
            )));
        }
        Ok(Config {
            replaced: replaced_operators(self.get(OPERATORS))?,
            threads: self.get(THREADS).map(parse_count).transpose()?,
        })
    }

    /// Returns whether the session has registered the library, with the configuration `config`.
    /// Fails if the session has registered the library with another configuration, or another
    /// version of the library.
    pub(crate) fn is_registered(&self, config: &Config) -> Result<bool, Failure> {
        let Some(registered) = self.get(REGISTERED) else {
            return Ok(false);
        };
        let text = config.text();
        if registered != text {
            return Err(Failure::invalid(format_args!(
                "the session options have registered {registered:?}, but now specify {text:?}; \
                 set {OPERATORS:?} and {THREADS:?} before the first registration"
            )));
        }
        Ok(true)
    }
}

/// Adds a config entry to the options of a session that registers the library with the
/// configuration `config`. [`Entries::is_registered`] reads this entry.
///
/// # Safety
///
/// `options` are valid options of the host. Nothing else accesses them during the call.
pub(crate) unsafe fn set_registered(
    api: Api,
    options: *mut OrtSessionOptions,
    config: &Config,
) -> Result<(), Failure> {
    let text = |text: &str| CString::new(text).unwrap_or_default();
    // SAFETY: the options are valid (contract of this function).
    unsafe { api.add_config_entry(options, &text(REGISTERED), &text(&config.text())) }
}

/// Checks the config entries of a node's session. Fails if an entry was added or changed after the
/// registration of the library, or if a key is misspelt.
///
/// Succeeds if the host is older than onnxruntime 1.24, because such a host does not report the
/// config entries of a node.
///
/// # Safety
///
/// `info` is a valid object of the host.
pub(crate) unsafe fn check_unchanged(api: Api, info: *const OrtKernelInfo) -> Result<(), Failure> {
    // SAFETY: `info` is valid (contract of this function).
    let Some(entries) = (unsafe { api.config_entries_of_node(info)? }) else {
        return Ok(());
    };
    let entries = Entries(entries);
    entries.is_registered(&entries.config()?).map(|_| ())
}

/// Whether `key` is similar to the keys of the library, and is not one of them. Letters decide:
/// `ndscater_ops` and `NDScatter.Threads` are misspelt keys, and `session.threads` is a key of the
/// host.
fn is_misspelt(key: &str) -> bool {
    let letters = key.chars().filter(char::is_ascii_alphabetic);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    letters.starts_with("ndscat") && !KEYS.contains(&key)
}

/// Returns the misspelt keys that the library looks for in the options of a host that does not list
/// all entries.
fn likely_misspellings() -> impl Iterator<Item = String> {
    const WORDS: [&str; 10] = [
        "op",
        "ops",
        "operator",
        "operators",
        "thread",
        "threads",
        "num_threads",
        "n_threads",
        "thread_count",
        "intra_op_num_threads",
    ];
    let keys = [".", "_", "-", "/", ":", ""]
        .into_iter()
        .flat_map(|separator| {
            WORDS
                .into_iter()
                .map(move |word| format!("ndscatter{separator}{word}"))
        });
    keys.filter(|key| is_misspelt(key))
}

/// Returns, for each operator of [`DEFINITIONS`], whether the library replaces the standard
/// operator. `entry` is the value of the config entry [`OPERATORS`]. If `entry` is `None`, the
/// library replaces all operators. Otherwise the library replaces the operators that `entry` names.
fn replaced_operators(entry: Option<&str>) -> Result<[bool; DEFINITIONS.len()], Failure> {
    let Some(entry) = entry else {
        return Ok([true; DEFINITIONS.len()]);
    };
    let mut replaced = [false; DEFINITIONS.len()];
    let names = entry.split(',').map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let position = DEFINITIONS
            .iter()
            .position(|definition| definition.text() == name);
        let position = position.ok_or_else(|| {
            let known: Vec<_> = DEFINITIONS.iter().map(Definition::text).collect();
            let known = known.join(", ");
            Failure::invalid(format_args!(
                "the config entry {OPERATORS:?} names {name:?}; use {known}"
            ))
        })?;
        replaced[position] = true;
    }
    Ok(replaced)
}

/// Parses a positive number.
fn parse_count(entry: &str) -> Result<usize, Failure> {
    let count = entry.trim().parse().ok().filter(|&count| count > 0);
    count.ok_or_else(|| {
        Failure::invalid(format_args!(
            "the config entry {THREADS:?} is {entry:?}; use a positive number of threads"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{
        DEFINITIONS, Entries, is_misspelt, likely_misspellings, parse_count, replaced_operators,
    };

    #[test]
    fn entries_name_operators_and_a_number_of_threads() {
        assert_eq!(
            replaced_operators(None).expect("all operators"),
            [true; DEFINITIONS.len()]
        );
        assert_eq!(
            replaced_operators(Some("")).expect("no operator"),
            [false; DEFINITIONS.len()]
        );
        let two = replaced_operators(Some(" ScatterND,TensorScatter ,")).expect("two operators");
        let names = DEFINITIONS
            .iter()
            .zip(two)
            .filter(|&(_, replaced)| replaced);
        let names: Vec<_> = names.map(|(definition, _)| definition.text()).collect();
        assert_eq!(names, ["ScatterND", "TensorScatter"]);
        replaced_operators(Some("scatternd")).expect_err("names are case-sensitive");
        assert_eq!(parse_count(" 3 ").expect("a number"), 3);
        for wrong in ["0", "-1", "", "two", "1.5"] {
            parse_count(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn misspelt_keys() {
        for key in [
            "ndscatter.thread",
            "ndscatter_threads",
            "NDScatter.ops",
            "ndscater.ops",
            "nd_scatter.threads",
            "ndscatter",
        ] {
            assert!(is_misspelt(key), "{key:?}");
        }
        for key in [
            "ndscatter.ops",
            "ndscatter.threads",
            "session.threads",
            "ops",
            "",
        ] {
            assert!(!is_misspelt(key), "{key:?}");
        }
        let likely: Vec<_> = likely_misspellings().collect();
        assert!(likely.iter().all(|key| is_misspelt(key)));
        assert!(likely.iter().any(|key| key == "ndscatter.thread"));
    }

    #[test]
    fn registered_configurations() {
        let entries = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            Entries(
                pairs
                    .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                    .collect(),
            )
        };
        let plain = entries(&[("session.a", "1")]).config().expect("no entry");
        let text = plain.text();
        assert!(!entries(&[]).is_registered(&plain).expect("not registered"));
        let registered = entries(&[("ndscatter.registered", &text)]);
        assert!(registered.is_registered(&plain).expect("registered"));
        let late = entries(&[
            ("ndscatter.ops", "Scatter"),
            ("ndscatter.registered", &text),
        ]);
        late.is_registered(&late.config().expect("an operator"))
            .expect_err("an entry was set after the registration");
        entries(&[("ndscatter.op", "")])
            .config()
            .expect_err("misspelt");
    }

    #[test]
    fn the_text_has_the_number_of_threads_without_the_limit() {
        let pair = ("ndscatter.threads".to_owned(), "999999".to_owned());
        let config = Entries(vec![pair]).config().expect("a number");
        assert!(config.text().ends_with("threads: 999999"));
        let limited = config.limited().threads.expect("a number");
        assert!((1..999_999).contains(&limited));
    }
}
