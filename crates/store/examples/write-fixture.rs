//! Writes the fixture of the present format: a state that every later version must open.
//!
//! `cargo run -p miserly-store --example write-fixture` replaces `tests/data/state-11`.

use std::error::Error;
use std::fs;
use std::path::Path;

use miserly_store::{Backups, Store};

#[path = "../tests/it/store/content.rs"]
mod content;

#[path = "../tests/it/store/fixture_content.rs"]
mod fixture_content;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/state-11");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut store = Store::open(&folder)?;
    store.commit(&fixture_content::fixture())?;
    store.commit(&fixture_content::checkpoint())?;
    Backups::new(&folder).take(1)?;
    drop(store);
    // Neither belongs to the format: they are made anew.
    fs::remove_file(folder.join("lock"))?;
    fs::remove_file(folder.join("store/jobs.db-shm"))?;
    println!("{} is written", folder.display());
    Ok(())
}
