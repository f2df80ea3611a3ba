//! `miserly slurm-names install`: links with the names of Slurm's commands.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::NAMES;
use crate::args::{SlurmNamesArgs, SlurmNamesCommand};
use crate::output::print;

pub(crate) fn run(args: &SlurmNamesArgs) -> anyhow::Result<()> {
    let SlurmNamesCommand::Install(args) = &args.command;
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    let folder = args.dir.canonicalize().with_context(|| format!("cannot find {}", args.dir.display()))?;
    for (name, _) in NAMES {
        let link = folder.join(name);
        if link.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            bail!("{}: this is a folder; choose another place", link.display());
        }
        if link.symlink_metadata().is_ok()
            && link.canonicalize().ok().as_ref() != Some(&program)
            && !args.replace
        {
            bail!(
                "{}: a file of this name exists, and it is not this program; choose another folder, or give --replace",
                link.display()
            );
        }
        if let Some(other) = other(name, &program).filter(|_| !args.replace) {
            bail!(
                "{} is another {name}, which users find in PATH; the names in {} would hide it, or be hidden by it. Give --replace to make them all the same",
                other.display(),
                folder.display()
            );
        }
    }
    for (name, _) in NAMES {
        let (link, new) = (folder.join(name), folder.join(format!(".{name}.new")));
        let _ = std::fs::remove_file(&new);
        symlink(&program, &new)
            .and_then(|()| std::fs::rename(&new, &link))
            .with_context(|| format!("cannot write {}", link.display()))?;
    }
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    print(&format!("{}: {}\nusers write: export PATH={0}:$PATH\n", folder.display(), names.join(", ")))
}

/// Returns the program of another package with this name in `PATH`.
fn other(name: &str, program: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())?;
    (found.canonicalize().ok().as_deref() != Some(program)).then_some(found)
}
