//! Registers the operators of the library for a session.
//!
//! This module knows the domains. It registers only the operators and element types that the
//! version of the host supports.

use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

use ndscatter_host::cross;
use ort_sys::{OrtApiBase, OrtCustomOpDomain, OrtErrorCode, OrtSessionOptions, OrtStatusPtr};

use crate::api::Api;
use crate::config::{Config, Entries, set_registered};
use crate::custom_op::{CustomOp, panicked};
use crate::definition::{DEFINITIONS, Definition, Domain};
use crate::element::ELEMENT_TYPES;
use crate::failure::Failure;
use crate::variant::Variant;

/// The operator domains of one [limited](Config::limited) configuration. The domains are never
/// freed, because the host does not report when a session ends.
struct Registration {
    api: Api,
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
/// configuration to the options. Does nothing if the options already have these domains.
///
/// # Safety
///
/// `options` are valid options of the host.
unsafe fn register(api: Api, options: *mut OrtSessionOptions, host: u32) -> Result<(), Failure> {
    // SAFETY: the options are valid (contract of this function).
    let entries = unsafe { Entries::read(api, options)? };
    let config = entries.config()?;
    if entries.is_registered(&config)? {
        return Ok(());
    }
    let limited = config.limited();
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let position = registered
        .iter()
        .position(|registered| registered.api == api && registered.config == limited);
    let position = match position {
        Some(position) => position,
        None => {
            registered.push(Registration {
                api,
                domains: domains(api, &limited, host)?,
                config: limited,
            });
            registered.len() - 1
        }
    };
    for &domain in &registered[position].domains {
        // SAFETY: the options are valid (contract of this function). The domain outlives them,
        // because domains are never freed.
        unsafe { api.add_domain(options, domain)? };
    }
    // SAFETY: the options are valid (contract of this function).
    unsafe { set_registered(api, options, &config) }
}

/// Creates the operator domains for the configuration `config`: the domain of the ONNX standard and
/// the domain `ndscatter`. The standard domain contains only the operators to replace. Both domains
/// omit operators that the host does not support, and a domain without operators is not created.
/// `host` is the minor version of onnxruntime: 24 means onnxruntime 1.24.
fn domains(api: Api, config: &Config, host: u32) -> Result<Vec<*mut OrtCustomOpDomain>, Failure> {
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
            operators(api, config.threads, domain, &DEFINITIONS[position], host)
                .map(|operator| Box::leak(Box::new(operator)).as_ptr())
        });
        // SAFETY: the operators are leaked, so they outlive the domain.
        domains.push(unsafe { api.domain(name, operators)? });
    }
    Ok(domains)
}

/// Returns the variants of an operator: one for each pair of an element type and an index type. The
/// element types are those that the host supports. The index types are those of `definition`.
fn operators(
    api: Api,
    threads: Option<usize>,
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
                api,
                domain,
                definition,
                element,
                index_type,
                threads,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::minor_of;

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
