//! The journal of a script, played again by the simulator.

use miserly_replay::{Cause, Missing, Played, Reader, compare};

use crate::world::{Checked, World};

impl World {
    /// The simulator makes the same decisions as the daemons did.
    pub(crate) fn check_replay(&self) -> Checked {
        let Played { difference, missing, .. } =
            self.played().map_err(|error| format!("the journal cannot be replayed: {error:#}"))?;
        if let Some(differs) = difference {
            return Err(format!("the replay of the journal differs: {differs:?}"));
        }
        let is_expected = |cause: &Cause| matches!(cause, Cause::Recovered | Cause::Gpus { .. });
        match missing.into_iter().find(|missing| !is_expected(&missing.cause)) {
            Some(Missing { cause, .. }) => {
                Err(format!("a part of the journal cannot be replayed: {cause:?}"))
            }
            None => Ok(()),
        }
    }

    fn played(&self) -> anyhow::Result<Played> {
        let mut reader = Reader::from_line(Some(1));
        for (number, line) in (1..).zip(&self.journal.contents().lines) {
            reader.line(number, line)?;
        }
        compare(reader.finish()?)
    }
}
