//! A machine as text: lines for its caches and its vendor, and one for each rate.
//!
//! Knows names and numbers. Knows nothing of what they mean.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::slice::from_mut;
use std::str::FromStr;

use super::{Machine, Vendor};

/// What the lines of caches and of the vendor begin with.
const CACHES: &str = "caches";
const VENDOR: &str = "vendor";

/// Bytes of the largest file that is read. One that [`Machine::write`] wrote has some 2 KiB.
const MOST_BYTES: u64 = 64 << 10;

/// Why a machine could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The system does not give the file, or does not take it; or what is to be read is not a
    /// regular file of at most 64 KiB.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line says nothing of a machine.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, the first of which is 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Machine {
    /// One from a file that [`write`](Self::write) wrote. A file may name a part: caches
    /// that it does not name are those [detected](Self::detected), rates and variants of
    /// kernels typical of this machine's vendor. A line `vendor = amd`, `intel` or `other`
    /// begins anew with those of that vendor. What follows a `#` is a comment. The file must be
    /// a regular file of at most 64 KiB.
    ///
    /// # Errors
    ///
    /// [`MachineError::File`] where it cannot be read or is no such file, and [`MachineError::Line`] where
    /// a line has an unknown name, or no numbers that can be what it says.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, MachineError> {
        let path = path.as_ref();
        let text = text_of(path).map_err(|source| of_file(path, source))?;
        text.parse()
    }

    /// Writes it where [`read`](Self::read) can find it.
    ///
    /// # Errors
    ///
    /// [`MachineError::File`] where it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), MachineError> {
        let path = path.as_ref();
        fs::write(path, self.to_text()).map_err(|source| of_file(path, source))
    }
}

/// The text of a regular file of at most [`MOST_BYTES`].
///
/// The file may become another one at any time. So what is known of it before it is opened
/// does not suffice: opening it does not wait, and the number of bytes is limited again as
/// they are read.
fn text_of(path: &Path) -> io::Result<String> {
    let refused = |kind, reason| Err(io::Error::new(kind, reason));
    // Before it is opened, as opening a device may do something.
    if !fs::metadata(path)?.is_file() {
        return refused(ErrorKind::InvalidInput, "not a regular file");
    }
    let mut text = String::new();
    opened(path)?
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return refused(ErrorKind::FileTooLarge, "larger than 64 KiB");
    }
    Ok(text)
}

/// The file, open for reading. A FIFO without a writer is opened at once, and is empty.
fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}

fn of_file(path: &Path, source: io::Error) -> MachineError {
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
                machine.take(line).map_err(|reason| MachineError::Line {
                    line: number,
                    reason,
                })?;
            }
        }
        Ok(machine)
    }
}

impl Machine {
    fn take(&mut self, line: &str) -> Result<(), &'static str> {
        let (name, numbers) = line.split_once('=').ok_or("no `name = numbers`")?;
        let (name, numbers) = (name.trim(), numbers.split_whitespace());
        if name == CACHES {
            let mut bytes = [0; 3];
            fill(&mut bytes, numbers, parsed)?;
            self.caches = Self::with_caches(bytes).caches;
            return Ok(());
        }
        if name == VENDOR {
            let mut vendor = [self.vendor];
            fill(&mut vendor, numbers, Vendor::named)?;
            *self = Self::of(vendor[0], self.caches);
            return Ok(());
        }
        let mut variants = self.variants.each_mut().into_iter();
        if let Some((_, variant)) = variants.find(|(own, _)| *own == name) {
            return fill(from_mut(variant), numbers, parsed);
        }
        let rate = self.rates.named_mut(name).ok_or("an unknown name")?;
        fill(rate, numbers, |text| parsed(text).filter(can_be))
    }

    fn to_text(&self) -> String {
        let [first, second, last] = self.caches;
        let mut lines = vec![
            "# A machine, for ndscatter: bytes of its caches, nanoseconds of what it does."
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

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Costs are sums and products of rates, and are to be compared.
fn can_be(rate: &f64) -> bool {
    (0.0..1e12).contains(rate)
}

/// As many numbers as there are places.
fn fill<'t, T>(
    places: &mut [T],
    mut numbers: impl Iterator<Item = &'t str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<(), &'static str> {
    for place in places {
        let text = numbers.next().ok_or("too few numbers")?;
        *place = parse(text).ok_or("not a number, or one that cannot be")?;
    }
    match numbers.next() {
        None => Ok(()),
        Some(_) => Err("too many numbers"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, MachineError, Vendor};

    #[test]
    fn what_is_written_is_read() {
        let mut machine = Machine::with_caches([1 << 15, 1 << 20, 480 << 20]);
        for (place, rate) in (1..).zip(["random", "wake", "merged"]) {
            let numbers = machine.rates.named_mut(rate).expect("a rate");
            numbers.fill(0.1 * f64::from(place));
        }
        for (_, number) in machine.variants.each_mut() {
            *number += 7;
        }
        let text = machine.to_text();
        assert_eq!(text.parse::<Machine>().expect("as written"), machine);
        for vendor in Vendor::ALL {
            let machine = Machine::of(vendor, [1 << 15, 1 << 20, 480 << 20]);
            let text = machine.to_text();
            assert_eq!(text.parse::<Machine>().expect("as written"), machine);
        }
    }

    #[test]
    fn a_vendor_stands_for_what_is_typical_of_its_machines() {
        let caches = Machine::detected().caches();
        let amd: Machine = "wake = 1\nvendor = amd".parse().expect("two lines");
        assert_eq!(amd, Machine::of(Vendor::Amd, caches), "begun anew");
        assert_ne!(amd.rates, Machine::of(Vendor::Intel, caches).rates);
        let other = Machine::of(Vendor::Other, caches);
        assert_eq!(other.rates, Machine::of(Vendor::Intel, caches).rates);
    }

    #[test]
    fn a_part_is_enough() {
        let text = "# by hand\n\n wake=5000 # less\ncaches = 1 2 3\r\n";
        let machine: Machine = text.parse().expect("two lines");
        assert_eq!(machine.caches(), [1, 2, 3]);
        assert_eq!(machine.rates.wake, 5000.0);
        assert_eq!(machine.rates.row, Machine::detected().rates.row);
        let machine: Machine = "".parse().expect("no line");
        assert_eq!(&machine, Machine::detected());
    }

    #[test]
    fn what_says_nothing_is_refused() {
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
    fn a_file_that_is_not_there_is_named() {
        let error = Machine::read("no/such/file").expect_err("none");
        assert!(error.to_string().starts_with("no/such/file"), "{error}");
    }
}
