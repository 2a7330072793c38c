// SPDX-License-Identifier: MIT

// Which tokio was found is known to the lock file alone.
fn main() {
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    let version = lock
        .split("[[package]]")
        .find(|package| package.contains("name = \"tokio\"\n"))
        .and_then(|package| package.split("version = \"").nth(1))
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("unknown")
        .to_string();
    println!("cargo:rustc-env=TOKIO_VERSION={version}");
}
