//! Detects the cache sizes of this machine.
//!
//! The module knows the system's files about caches. It does not know how the sizes are used.

/// Lists the paths of the system's files that describe the caches of the first processor: for each
/// cache, the files with its type, its level and its size. The paths are literals, because building
/// a path at run time needs an allocation, which may fail.
#[cfg(all(target_os = "linux", not(miri)))]
macro_rules! cache_files {
    ($($index:literal)*) => {
        [$([
            concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/type"),
            concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/level"),
            concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/size"),
        ]),*]
    };
}

/// Returns the bytes of the first-level, second-level and last-level cache of data on the first
/// processor. A level without such a cache has 0 bytes. `None`: the system does not report the
/// caches, or reports no cache of the first level.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) fn detect() -> Option<[u64; 3]> {
    let mut caches = [0; 3];
    for [kind, level, size] in cache_files!(0 1 2 3 4) {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        let Some(kind) = read(kind, &mut first) else {
            break;
        };
        if kind == "Instruction" {
            continue;
        }
        let level: usize = read(level, &mut first)?.parse().ok()?;
        let slot = caches.get_mut(level.checked_sub(1)?.min(2))?;
        *slot = bytes(read(size, &mut second)?)?;
    }
    (caches[0] > 0).then_some(caches)
}

/// Returns the first 32 bytes of a file as text, without leading and trailing white space. The
/// function does not allocate: the standard library copies short paths to the stack.
#[cfg(all(target_os = "linux", not(miri)))]
fn read<'b>(path: &str, buffer: &'b mut [u8; 32]) -> Option<&'b str> {
    use std::io::Read;

    let len = std::fs::File::open(path).ok()?.read(buffer).ok()?;
    Some(std::str::from_utf8(&buffer[..len]).ok()?.trim())
}

/// Returns `None`: the caches are detected only on Linux.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) fn detect() -> Option<[u64; 3]> {
    None
}

/// Parses a cache size as the system writes it, for example `1024K`, and returns the bytes.
#[cfg(any(test, all(target_os = "linux", not(miri))))]
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("32K", Some(32 << 10)),
            ("480M", Some(480 << 20)),
            ("512", Some(512)),
            ("K", None),
            ("1T", None),
            ("-1K", None),
            ("", None),
            ("99999999999999G", None),
        ] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }
}
