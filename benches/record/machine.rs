//! Describes this machine from files of the operating system (Linux).

use std::fs;

use super::file::Machine;

pub(crate) fn describe(threads: usize) -> Machine {
    Machine {
        processor: processor().unwrap_or_else(|| std::env::consts::ARCH.into()),
        threads,
        caches: (0..)
            .map_while(|index| Some((index, cache_file(index, "type")?)))
            .filter(|(_, holds)| holds != "Instruction")
            .filter_map(|(index, _)| cache(index))
            .collect(),
    }
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(": ")?.1.into())
}

/// Reads cache `index` of the first processor: level, bytes, and the number of processors that
/// share it.
fn cache(index: usize) -> Option<(u8, u64, usize)> {
    let size = cache_file(index, "size")?;
    let (number, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let unit = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    let shared = cache_file(index, "shared_cpu_map")?;
    let sharers = shared.chars().filter_map(|digit| digit.to_digit(16));
    let sharers: u32 = sharers.map(u32::count_ones).sum();
    let level = cache_file(index, "level")?.parse().ok()?;
    Some((level, number.parse::<u64>().ok()? * unit, sharers as usize))
}

fn cache_file(index: usize, name: &str) -> Option<String> {
    let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
    Some(fs::read_to_string(path).ok()?.trim().into())
}
