//! Reads and writes the description of a machine as text. The text has one line for the cache
//! sizes, one line for the vendor, one line for each rate, and one line for each variant.
//!
//! The module knows the names and values of rates and variants. The module does not know their
//! meaning.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process;
use std::slice::from_mut;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Machine, Vendor};

/// Name of the line of a machine file that states the cache sizes.
const CACHES: &str = "caches";
/// Name of the line of a machine file that states the vendor of the processor.
const VENDOR: &str = "vendor";

/// Error text for a line of a machine file whose value is invalid.
const INVALID: &str = "invalid value; sizes and variants are whole numbers, rates are numbers from \
                       0 to below 1e12, the vendor is `amd`, `intel` or `other`";

/// Maximum size, in bytes, of a machine file. A file that [`Machine::write`] wrote has about 2 KiB.
const MAX_BYTES: u64 = 64 << 10;

/// Reason why the description of a machine could not be read from a file or written to a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The system failed to read or write the file, or the file to read is not a regular file, or
    /// is larger than 64 KiB.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A line has an unknown name or invalid values.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line. The first line of the file has the number 1.
        line: usize,
        /// What is wrong with the line, and how to fix it.
        reason: &'static str,
    },
}

impl Machine {
    /// Reads the description of a machine from a file in the format of [`write`](Self::write).
    ///
    /// The file must be a regular file of at most 64 KiB. Every line may be missing. Without a line
    /// for the caches, the machine has the [detected](Self::detected) cache sizes. Rates and kernel
    /// variants that have no line get the typical values of the detected vendor. A line `vendor =
    /// amd`, `vendor = intel` or `vendor = other` sets all rates and variants to the typical values
    /// of the named vendor, and overrides the lines before it. Text after a `#` is a comment.
    ///
    /// # Errors
    ///
    /// [`MachineError::File`] if the file cannot be read, is not a regular file or is too large.
    /// [`MachineError::Line`] if a line has an unknown name or invalid values.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, MachineError> {
        let path = path.as_ref();
        let text = read_text(path).map_err(|source| file_error(path, source))?;
        text.parse()
    }

    /// Writes the description of the machine to a file that [`read`](Self::read) can read.
    ///
    /// A regular file is replaced only after the new file is complete: the description is first
    /// written to a new file in the same folder, which then gets the name. If `path` is a link, the
    /// file that it points to is replaced.
    ///
    /// # Errors
    ///
    /// [`MachineError::File`] if the file cannot be written. An existing regular file is then
    /// unchanged.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), MachineError> {
        let path = path.as_ref();
        replace(path, &self.to_text()).map_err(|source| file_error(path, source))
    }
}

/// Writes `text` to a temporary file next to the target file, and then renames it to the target
/// file. A disk that is full therefore leaves the old file, which running programs may read.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs::metadata(path) {
        // The file that a link points to is replaced, and not the link.
        Ok(existing) if existing.is_file() => fs::canonicalize(path)?,
        // A device or a pipe would be replaced by a regular file.
        Ok(_) => return fs::write(path, text),
        // A link to a file that does not exist. The write makes this file.
        Err(_) if path.is_symlink() => return fs::write(path, text),
        Err(_) => path.to_owned(),
    };
    // Two calls that run at the same time use two temporary files.
    static WRITES: AtomicUsize = AtomicUsize::new(0);
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let mut unfinished = target.clone().into_os_string();
    unfinished.push(format!(".{}-{number}.part", process::id()));
    let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, &target));
    if written.is_err() {
        // The error of the write is reported, and not an error of this removal.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Reads the text of a regular file. Refuses other files, and files of more than [`MAX_BYTES`]
/// bytes.
///
/// Another process may replace the file between the check of its type and the opening. So the file
/// is opened without blocking, and at most `MAX_BYTES + 1` bytes are read.
fn read_text(path: &Path) -> io::Result<String> {
    let refused = |kind, reason| Err(io::Error::new(kind, reason));
    // The type is checked before the file is opened, because opening a device may have side
    // effects.
    if !fs::metadata(path)?.is_file() {
        return refused(ErrorKind::InvalidInput, "not a regular file");
    }
    let mut text = String::new();
    open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return refused(ErrorKind::FileTooLarge, "larger than 64 KiB");
    }
    Ok(text)
}

/// Opens a file for reading. On Unix, opening a FIFO without a writer does not block, and the FIFO
/// reads as empty.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}

fn file_error(path: &Path, source: io::Error) -> MachineError {
    let path = path.to_owned();
    MachineError::File { path, source }
}

impl FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let mut machine = Self::detected().clone();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                machine.apply(line).map_err(|reason| MachineError::Line {
                    line: number,
                    reason,
                })?;
            }
        }
        Ok(machine)
    }
}

impl Machine {
    /// Sets the value that `line` names. `line` is one line of a machine file, without its comment.
    /// The error says what is wrong with the line.
    fn apply(&mut self, line: &str) -> Result<(), &'static str> {
        let (name, values) = line.split_once('=').ok_or("no `=`; use `name = values`")?;
        let (name, values) = (name.trim(), values.split_whitespace());
        if name == CACHES {
            let mut bytes = [0; 3];
            fill(&mut bytes, values, parsed)?;
            self.caches = Self::with_caches(bytes).caches;
            return Ok(());
        }
        if name == VENDOR {
            let mut vendor = [self.vendor];
            fill(&mut vendor, values, Vendor::named)?;
            *self = Self::of(vendor[0], self.caches);
            return Ok(());
        }
        let mut variants = self.variants.each_mut().into_iter();
        if let Some((_, variant)) = variants.find(|(own, _)| *own == name) {
            return fill(from_mut(variant), values, parsed);
        }
        let unknown = "unknown name; use a name from a file that `Machine::write` wrote";
        let rate = self.rates.named_mut(name).ok_or(unknown)?;
        fill(rate, values, |text| parsed(text).filter(is_valid_rate))
    }

    /// Returns the text of the machine file.
    fn to_text(&self) -> String {
        let [first, second, last] = self.caches;
        let mut lines = vec![
            "# Machine file of ndscatter: caches in bytes, rates in nanoseconds or ratios."
                .to_owned(),
            format!("{CACHES} = {first} {second} {last}"),
            format!("{VENDOR} = {}", self.vendor.name()),
        ];
        for (name, rates) in self.rates.each() {
            let rates: Vec<String> = rates.iter().map(f64::to_string).collect();
            lines.push(format!("{name} = {}", rates.join(" ")));
        }
        let mut variants = self.variants;
        for (name, variant) in variants.each_mut() {
            lines.push(format!("{name} = {variant}"));
        }
        lines.join("\n") + "\n"
    }
}

/// Parses one value.
fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Checks whether a rate is at least 0 and below 1e12. With such rates, costs (sums and products of
/// rates) stay finite and are never NaN.
fn is_valid_rate(rate: &f64) -> bool {
    (0.0..1e12).contains(rate)
}

/// Parses exactly one value for each element of `places`, and stores each value in its element. The
/// error says what is wrong with the values.
fn fill<'t, T>(
    places: &mut [T],
    mut values: impl Iterator<Item = &'t str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<(), &'static str> {
    for place in places {
        let text = values.next().ok_or("too few values for the name")?;
        *place = parse(text).ok_or(INVALID)?;
    }
    match values.next() {
        None => Ok(()),
        Some(_) => Err("too many values for the name"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, MachineError, Vendor};

    #[test]
    fn a_written_machine_is_read() {
        let mut machine = Machine::with_caches([1 << 15, 1 << 20, 480 << 20]);
        for (place, rate) in (1..).zip(["random", "wake", "merged"]) {
            let numbers = machine.rates.named_mut(rate).expect("a rate");
            numbers.fill(0.1 * f64::from(place));
        }
        for (_, number) in machine.variants.each_mut() {
            *number += 7;
        }
        let text = machine.to_text();
        assert_eq!(text.parse::<Machine>().expect("a written machine"), machine);
        for vendor in Vendor::ALL {
            let machine = Machine::of(vendor, [1 << 15, 1 << 20, 480 << 20]);
            let text = machine.to_text();
            assert_eq!(text.parse::<Machine>().expect("a written machine"), machine);
        }
    }

    #[test]
    fn a_vendor_sets_the_typical_rates() {
        let caches = Machine::detected().caches();
        let amd: Machine = "wake = 1\nvendor = amd".parse().expect("two lines");
        assert_eq!(
            amd,
            Machine::of(Vendor::Amd, caches),
            "without earlier rates"
        );
        assert_ne!(amd.rates, Machine::of(Vendor::Intel, caches).rates);
        let other = Machine::of(Vendor::Other, caches);
        assert_eq!(other.rates, Machine::of(Vendor::Intel, caches).rates);
    }

    #[test]
    fn missing_lines_have_defaults() {
        let text = "# by hand\n\n wake=5000 # less\ncaches = 1 2 3\r\n";
        let machine: Machine = text.parse().expect("two lines");
        assert_eq!(machine.caches(), [1, 2, 3]);
        assert_eq!(machine.rates.wake, 5000.0);
        assert_eq!(machine.rates.row, Machine::detected().rates.row);
        let machine: Machine = "".parse().expect("no line");
        assert_eq!(&machine, Machine::detected());
    }

    #[test]
    fn invalid_lines_are_refused() {
        for line in [
            "vendor = AMD",
            "vendor =",
            "wake",
            "wake =",
            "wake = fast",
            "wake = 1 2",
            "wake = -1",
            "wake = NaN",
            "wake = inf",
            "wake = 1e300",
            "walk = 1",
            "near_bytes = 1.5",
            "stream_prefetch = no",
            "stream_bytes = 1 2",
            "random = 1 2 3",
            "caches = 1 2",
            "caches = 1 2 -3",
            "caches = 1 2 3 4",
            "= 1",
        ] {
            let text = format!("row = 1\n{line}");
            let found = text.parse::<Machine>();
            assert!(
                matches!(found, Err(MachineError::Line { line: 2, .. })),
                "{line:?}: {found:?}"
            );
        }
    }

    #[test]
    fn an_error_names_the_missing_file() {
        let error = Machine::read("no/such/file").expect_err("no such file");
        assert!(error.to_string().starts_with("no/such/file"), "{error}");
    }
}
