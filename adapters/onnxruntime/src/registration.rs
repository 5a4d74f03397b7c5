//! What a host calls when a session is given the library.
//!
//! Knows config entries, domains, and which host has what.

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
use crate::offer::Offer;

/// Which standard operators are taken over: names with commas between; all by default.
const OPERATORS: &CStr = c"ndscatter.ops";

/// How many threads a session has; measured by default.
const THREADS: &CStr = c"ndscatter.threads";

/// What a session asks for.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    api: Api,
    /// Of the standard operators, by their number.
    taken: [bool; DEFINITIONS.len()],
    threads: Option<usize>,
}

/// Domains that were made. They stay: sessions have no other owner for them.
struct Made {
    wanted: Wanted,
    domains: Vec<*mut OrtCustomOpDomain>,
}

// SAFETY: domains are only handed to the host, which changes none of them.
unsafe impl Send for Made {}

/// One entry for each combination of options, however many sessions there are.
static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

/// Gives a session the operators: the function that onnxruntime looks for in a library of
/// custom operators.
///
/// # Safety
///
/// Both are as the host gives them: `options` of a session, `base` its own.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    // SAFETY: the caller vouches for both.
    unsafe {
        let host = host_minor(base);
        let Some(api) = Api::new(base, host) else {
            return too_old(base);
        };
        let registered = cross(|| register(api, options, host));
        api.told(registered.unwrap_or_else(|_| Err(panicked())))
    }
}

/// A status from a host whose table is older than the one that is needed: the function that
/// makes one is the first of any.
unsafe fn too_old(base: *const OrtApiBase) -> OrtStatusPtr {
    const OLDEST: u32 = 1;
    let message = c"ndscatter: onnxruntime 1.18 or newer is needed";
    // SAFETY: the caller vouches for `base`; no other function of the table is touched.
    unsafe {
        let table = ((*base).GetApi)(OLDEST);
        let create = (&raw const (*table).CreateStatus).read();
        create(OrtErrorCode::ORT_NOT_IMPLEMENTED, message.as_ptr())
    }
}

/// The `x` of a host 1.x.
///
/// # Safety
///
/// `base` is a host's.
unsafe fn host_minor(base: *const OrtApiBase) -> u32 {
    // SAFETY: the host's version is a text that stays.
    let version = unsafe { CStr::from_ptr(((*base).GetVersionString)().cast::<c_char>()) };
    minor_of(&version.to_string_lossy())
}

/// That of a version as text. All that may follow 1.x have what it has.
fn minor_of(version: &str) -> u32 {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    match (numbers.next(), numbers.next()) {
        (Some(1), Some(minor)) => minor,
        (Some(major), _) if major > 1 => u32::MAX,
        _ => 0,
    }
}

/// # Safety
///
/// `options` are the host's.
unsafe fn register(api: Api, options: *mut OrtSessionOptions, host: u32) -> Result<(), Failure> {
    // SAFETY: the caller vouches for the options.
    let wanted = unsafe { wanted(api, options)? };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let position = made.iter().position(|made| made.wanted == wanted);
    let position = match position {
        Some(position) => position,
        None => {
            let domains = domains(&wanted, host)?;
            made.push(Made { wanted, domains });
            made.len() - 1
        }
    };
    for &domain in &made[position].domains {
        // SAFETY: as above; domains stay.
        unsafe { api.add_domain(options, domain)? };
    }
    Ok(())
}

/// # Safety
///
/// As for [`register`].
unsafe fn wanted(api: Api, options: *const OrtSessionOptions) -> Result<Wanted, Failure> {
    // SAFETY: the caller vouches for the options.
    let (operators, threads) = unsafe {
        (
            api.config_entry(options, OPERATORS)?,
            api.config_entry(options, THREADS)?,
        )
    };
    Ok(Wanted {
        api,
        taken: taken(operators.as_deref())?,
        threads: threads.map(|threads| counted(&threads)).transpose()?,
    })
}

/// The number of threads that a session has. A larger number than that of processors counts as
/// the number of processors: more threads gain nothing, and each number has operators that stay
/// in memory, 69 KB.
///
/// The host tells neither a kernel which session it is of (the interface of 1.18 has no function
/// for it) nor this library when a session ends, so that operators of different numbers can
/// neither be shared nor freed.
fn counted(entry: &str) -> Result<usize, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(count(entry)?.min(processors))
}

/// The operators that an entry names.
fn taken(entry: Option<&str>) -> Result<[bool; DEFINITIONS.len()], Failure> {
    let Some(entry) = entry else {
        return Ok([true; DEFINITIONS.len()]);
    };
    let mut taken = [false; DEFINITIONS.len()];
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
        taken[position] = true;
    }
    Ok(taken)
}

fn count(entry: &str) -> Result<usize, Failure> {
    let count = entry.trim().parse().ok().filter(|&count| count > 0);
    count.ok_or_else(|| {
        Failure::invalid(format_args!(
            "the config entry {THREADS:?} is {entry:?}; use a number of threads"
        ))
    })
}

fn domains(wanted: &Wanted, host: u32) -> Result<Vec<*mut OrtCustomOpDomain>, Failure> {
    let mut domains = Vec::new();
    for (domain, name) in [(Domain::Standard, c""), (Domain::Own, c"ndscatter")] {
        let is_offered = |position: usize| {
            (domain == Domain::Own || wanted.taken[position]) && DEFINITIONS[position].host <= host
        };
        let offered: Vec<_> = (0..DEFINITIONS.len()).filter(|&p| is_offered(p)).collect();
        if offered.is_empty() {
            continue;
        }
        let operators = offered.iter().flat_map(|&position| {
            operators(wanted, domain, &DEFINITIONS[position], host)
                .map(|operator| Box::leak(Box::new(operator)).as_ptr())
        });
        // SAFETY: operators are never freed.
        domains.push(unsafe { wanted.api.domain(name, operators)? });
    }
    Ok(domains)
}

/// One operator for each type of elements and of indices.
fn operators(
    wanted: &Wanted,
    domain: Domain,
    definition: &'static Definition,
    host: u32,
) -> impl Iterator<Item = CustomOp> {
    let elements = ELEMENT_TYPES
        .iter()
        .filter(move |element| element.host <= host);
    elements.flat_map(move |element| {
        definition.index_types.iter().map(move |&index_type| {
            CustomOp::new(Offer {
                api: wanted.api,
                domain,
                definition,
                element,
                index_type,
                threads: wanted.threads,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{DEFINITIONS, count, minor_of, taken};

    #[test]
    fn entries_name_operators_and_a_number_of_threads() {
        assert_eq!(taken(None).expect("all"), [true; DEFINITIONS.len()]);
        assert_eq!(taken(Some("")).expect("none"), [false; DEFINITIONS.len()]);
        let two = taken(Some(" ScatterND,TensorScatter ,")).expect("two of them");
        let names = DEFINITIONS.iter().zip(two).filter(|&(_, taken)| taken);
        let names: Vec<_> = names.map(|(definition, _)| definition.text()).collect();
        assert_eq!(names, ["ScatterND", "TensorScatter"]);
        taken(Some("scatternd")).expect_err("names are those of the standard");
        assert_eq!(count(" 3 ").expect("a number"), 3);
        for wrong in ["0", "-1", "", "two", "1.5"] {
            count(wrong).expect_err(wrong);
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
