#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ndscatter_fuzz::gather::fuzz(bytes));
