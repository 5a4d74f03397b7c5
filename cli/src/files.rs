//! Reads input files. Writes output files completely or not at all.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

use crate::Failure;
use crate::arguments::Files;
use crate::array::{Array, ReadError};
use crate::job::Inputs;

pub(crate) fn read_inputs(files: &Files) -> Result<Inputs, Failure> {
    Ok(Inputs {
        data: read(&files.data)?,
        indices: read(&files.indices)?,
        updates: files.updates.as_deref().map(read).transpose()?,
        names: names(files),
    })
}

/// Returns the names of the inputs, for messages.
fn names(files: &Files) -> String {
    let (data, indices) = (files.data.display(), files.indices.display());
    match &files.updates {
        Some(updates) => format!(
            "data {data}, indices {indices}, updates {}",
            updates.display()
        ),
        None => format!("data {data}, indices {indices}"),
    }
}

pub(crate) fn read(path: &Path) -> Result<Array, Failure> {
    File::open(path)
        .map_err(ReadError::Open)
        .and_then(|file| Array::read(BufReader::new(file)))
        .map_err(|source| Failure::Read {
            path: path.to_owned(),
            source,
        })
}

/// Writes `array` to `path`. On an error, the file at `path` is unchanged.
pub(crate) fn write(path: &Path, array: &Array) -> Result<(), Failure> {
    replace(path, array).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

/// Writes a temporary file in the folder of `path`, then renames it to `path`.
fn replace(path: &Path, array: &Array) -> io::Result<()> {
    let target = match fs::metadata(path) {
        // A link stays a link: its target is replaced.
        Ok(existing) if existing.is_file() => fs::canonicalize(path)?,
        // A pipe or a device is written to directly. A file must not replace it.
        Ok(_) => return fill(path, array),
        Err(_) => path.to_owned(),
    };
    let mut unfinished = target.clone().into_os_string();
    unfinished.push(format!(".{}.part", process::id()));
    let unfinished = PathBuf::from(unfinished);
    let written = fill(&unfinished, array).and_then(|()| fs::rename(&unfinished, &target));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn fill(path: &Path, array: &Array) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    array.write(&mut file)?;
    file.flush()
}
