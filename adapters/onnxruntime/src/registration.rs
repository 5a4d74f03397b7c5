//! Registers the operators of the library for a session.
//!
//! This module knows the config entries and the domains. It registers only the operators and
//! element types that the version of the host supports.

use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ndscatter_host::cross;
use ort_sys::{OrtApiBase, OrtCustomOpDomain, OrtErrorCode, OrtSessionOptions, OrtStatusPtr};

use crate::api::Api;
use crate::custom_op::{CustomOp, panicked};
use crate::definition::{DEFINITIONS, Definition, Domain};
use crate::element::ELEMENT_TYPES;
use crate::failure::Failure;
use crate::variant::Variant;

/// Key of the config entry that lists the standard operators to replace: names separated by commas.
/// Without this entry, the library replaces all operators of [`DEFINITIONS`].
const OPERATORS: &CStr = c"ndscatter.ops";

/// Key of the config entry that states the number of threads of a session. Without this entry, the
/// library measures the number of threads.
const THREADS: &CStr = c"ndscatter.threads";

/// The configuration of a session, which determines the operators that the library registers.
#[derive(Clone, Debug, PartialEq)]
struct Config {
    api: Api,
    /// For each operator of [`DEFINITIONS`], in the same order, whether the library replaces the
    /// standard operator.
    replaced: [bool; DEFINITIONS.len()],
    threads: Option<usize>,
}

/// The operator domains of one configuration. The domains are never freed, because the host does
/// not report when a session ends.
struct Registration {
    config: Config,
    domains: Vec<*mut OrtCustomOpDomain>,
}

// SAFETY: the library only passes finished domains to the host, and the host does not change them.
unsafe impl Send for Registration {}

/// The registrations of the process: one per configuration. Sessions with the same configuration
/// share one registration.
static REGISTERED: Mutex<Vec<Registration>> = Mutex::new(Vec::new());

/// Registers the operators for a session. onnxruntime calls the function `RegisterCustomOps` of
/// each library of custom operators that a session registers.
///
/// # Safety
///
/// `options` are the valid options of a session, and `base` is valid. Both come from the host.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    // SAFETY: both pointers are valid (contract of this function).
    unsafe {
        let host = host_minor(base);
        let Some(api) = Api::new(base, host) else {
            return too_old(base);
        };
        let registered = cross(|| register(api, options, host));
        api.status(registered.unwrap_or_else(|_| Err(panicked())))
    }
}

/// Returns a failure status with the message that the host is too old.
///
/// Calls only one function of the host's function table, the function that makes a status. This
/// function is the first entry of the table in every version of the host.
///
/// # Safety
///
/// `base` is valid and comes from a host.
unsafe fn too_old(base: *const OrtApiBase) -> OrtStatusPtr {
    const OLDEST: u32 = 1;
    let message = c"ndscatter: onnxruntime is too old; use 1.18 or newer";
    // SAFETY: `base` is valid (contract of this function). Only the first entry of the table is
    // read, and every table has this entry.
    unsafe {
        let table = ((*base).GetApi)(OLDEST);
        let create = (&raw const (*table).CreateStatus).read();
        create(OrtErrorCode::ORT_NOT_IMPLEMENTED, message.as_ptr())
    }
}

/// Returns the minor version of the host: 24 for onnxruntime 1.24. See [`minor_of`] for a host
/// whose major version is not 1.
///
/// # Safety
///
/// `base` is valid and comes from a host.
unsafe fn host_minor(base: *const OrtApiBase) -> u32 {
    // SAFETY: `base` is valid (contract of this function). The host's version string is static.
    let version = unsafe { CStr::from_ptr(((*base).GetVersionString)().cast::<c_char>()) };
    minor_of(&version.to_string_lossy())
}

/// Returns the minor version x of a version string that begins with `1.x`. Returns `u32::MAX` for a
/// major version above 1, so that it counts as newer than every 1.x. Returns 0 for all other
/// strings.
fn minor_of(version: &str) -> u32 {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    match (numbers.next(), numbers.next()) {
        (Some(1), Some(minor)) => minor,
        (Some(major), _) if major > 1 => u32::MAX,
        _ => 0,
    }
}

/// Reads the configuration of a session from its options, and adds the operator domains of this
/// configuration to the options.
///
/// # Safety
///
/// `options` are valid options of the host.
unsafe fn register(api: Api, options: *mut OrtSessionOptions, host: u32) -> Result<(), Failure> {
    // SAFETY: the options are valid (contract of this function).
    let config = unsafe { read_config(api, options)? };
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let position = registered
        .iter()
        .position(|registered| registered.config == config);
    let position = match position {
        Some(position) => position,
        None => {
            let domains = domains(&config, host)?;
            registered.push(Registration { config, domains });
            registered.len() - 1
        }
    };
    for &domain in &registered[position].domains {
        // SAFETY: the options are valid (contract of this function). The domain outlives them,
        // because domains are never freed.
        unsafe { api.add_domain(options, domain)? };
    }
    Ok(())
}

/// Returns the configuration that the config entries of a session specify.
///
/// # Safety
///
/// The contract of [`register`] holds.
unsafe fn read_config(api: Api, options: *const OrtSessionOptions) -> Result<Config, Failure> {
    // SAFETY: the options are valid (contract of this function).
    let (operators, threads) = unsafe {
        (
            api.config_entry(options, OPERATORS)?,
            api.config_entry(options, THREADS)?,
        )
    };
    Ok(Config {
        api,
        replaced: replaced_operators(operators.as_deref())?,
        threads: threads.map(|threads| thread_count(&threads)).transpose()?,
    })
}

/// Returns the number of threads that the config entry states, limited to the number of processors.
///
/// More threads than processors do not make a run faster. Sessions with different numbers of
/// threads have separate operators. The operators for one number of threads occupy 69 KB until the
/// process ends, so the limit also bounds this memory. These sessions cannot share operators,
/// because the host does not report to which session a kernel belongs. The interface of onnxruntime
/// 1.18 has no function for this. The library cannot free the operators, because the host does not
/// report the end of a session.
fn thread_count(entry: &str) -> Result<usize, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(parse_count(entry)?.min(processors))
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

/// Creates the operator domains for the configuration `config`: the domain of the ONNX standard and
/// the domain `ndscatter`. The standard domain contains only the operators to replace. Both domains
/// omit operators that the host does not support, and a domain without operators is not created.
/// `host` is the minor version of onnxruntime: 24 means onnxruntime 1.24.
fn domains(config: &Config, host: u32) -> Result<Vec<*mut OrtCustomOpDomain>, Failure> {
    let mut domains = Vec::new();
    for (domain, name) in [(Domain::Standard, c""), (Domain::Own, c"ndscatter")] {
        let is_offered = |position: usize| {
            (domain == Domain::Own || config.replaced[position])
                && DEFINITIONS[position].host <= host
        };
        let offered: Vec<_> = (0..DEFINITIONS.len()).filter(|&p| is_offered(p)).collect();
        if offered.is_empty() {
            continue;
        }
        let operators = offered.iter().flat_map(|&position| {
            operators(config, domain, &DEFINITIONS[position], host)
                .map(|operator| Box::leak(Box::new(operator)).as_ptr())
        });
        // SAFETY: the operators are leaked, so they outlive the domain.
        domains.push(unsafe { config.api.domain(name, operators)? });
    }
    Ok(domains)
}

/// Returns the variants of an operator: one for each pair of an element type and an index type. The
/// element types are those that the host supports. The index types are those of `definition`.
fn operators(
    config: &Config,
    domain: Domain,
    definition: &'static Definition,
    host: u32,
) -> impl Iterator<Item = CustomOp> {
    let elements = ELEMENT_TYPES
        .iter()
        .filter(move |element| element.host <= host);
    elements.flat_map(move |element| {
        definition.index_types.iter().map(move |&index_type| {
            CustomOp::new(Variant {
                api: config.api,
                domain,
                definition,
                element,
                index_type,
                threads: config.threads,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{DEFINITIONS, minor_of, parse_count, replaced_operators};

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
    fn versions_of_hosts() {
        for (version, minor) in [
            ("1.18.0", 18),
            ("1.32.0-dev", 32),
            ("1.24", 24),
            ("2.0.0", u32::MAX),
            ("0.9", 0),
            ("", 0),
        ] {
            assert_eq!(minor_of(version), minor, "{version:?}");
        }
    }
}
