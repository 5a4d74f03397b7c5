//! What this machine is, from the system's files.

use std::fs;

use super::file::Machine;

pub(crate) fn describe(threads: usize) -> Machine {
    Machine {
        processor: processor().unwrap_or_else(|| std::env::consts::ARCH.into()),
        threads,
        caches: (0..).map_while(cache).flatten().collect(),
    }
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(": ")?.1.into())
}

/// Cache `index` of the first processor: level, bytes, and who shares it. `None`
/// in `Some` where it holds instructions.
fn cache(index: usize) -> Option<Option<(u8, u64, usize)>> {
    let file = |name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
        fs::read_to_string(path).ok()
    };
    if file("type")?.trim() == "Instruction" {
        return Some(None);
    }
    let level = file("level")?.trim().parse().ok()?;
    let size = file("size")?;
    let (number, unit) = size.trim().split_at(size.trim().len() - 1);
    let unit = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    let shared = file("shared_cpu_map")?;
    let sharers: u32 = shared
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(u32::count_ones)
        .sum();
    let bytes = number.parse::<u64>().ok()? * unit;
    Some(Some((level, bytes, sharers as usize)))
}
