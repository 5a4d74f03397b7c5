//! Reads input files and writes output files. An output file is replaced only after the new file is
//! complete.

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

/// Returns the paths of the input files as one text, for messages.
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

/// Writes `array` to `path`. If the write fails, a regular file at `path` is unchanged.
pub(crate) fn write(path: &Path, array: &Array) -> Result<(), Failure> {
    replace(path, array).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

/// Writes a temporary file next to the target file, and then renames it to the target file. The
/// target file is `path`, or the file to which the link `path` points.
fn replace(path: &Path, array: &Array) -> io::Result<()> {
    let target = match fs::metadata(path) {
        // If `path` is a symbolic link, the file that it points to is replaced, and not the link.
        Ok(existing) if existing.is_file() => fs::canonicalize(path)?,
        // The array is written directly to a pipe or a device, without a temporary file: renaming a
        // temporary file would replace the pipe or the device by a regular file.
        Ok(_) => return fill(path, array),
        Err(_) => path.to_owned(),
    };
    let mut unfinished = target.clone().into_os_string();
    unfinished.push(format!(".{}.part", process::id()));
    let unfinished = PathBuf::from(unfinished);
    let written = fill(&unfinished, array).and_then(|()| fs::rename(&unfinished, &target));
    if written.is_err() {
        // The error of the write is reported. If the incomplete temporary file cannot be removed,
        // the error of the removal is ignored.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn fill(path: &Path, array: &Array) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    array.write(&mut file)?;
    file.flush()
}
