//! `miserly backup`: a checked copy of a daemon's state, also while the daemon runs.

use anyhow::Context;
use miserly_live::store::back_up;

use crate::args::BackupArgs;
use crate::output::print;

/// Writes a backup and prints its path.
pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<()> {
    let state = super::state_folder(args.state.as_deref())?;
    let path =
        back_up(&state, &args.to).with_context(|| format!("there is no backup of {}", state.display()))?;
    print(&format!("{}\n", path.display()))
}
