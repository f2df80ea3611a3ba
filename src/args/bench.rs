//! The arguments of `miserly bench`.

use clap::Args;
use miserly_gym::score::WindowSet;
use miserly_options::values::words;
use miserly_policies::PolicySpec;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The policy, such as easy(order=f1)
    pub(crate) policy: PolicySpec,

    /// The windows: those on which a policy may be chosen, or those that are held out
    #[arg(long, value_parser = words(&WINDOWS), default_value = "training")]
    pub(crate) windows: WindowSet,

    /// The policy that it is compared with
    #[arg(long, value_name = "POLICY", default_value = "easy")]
    pub(crate) against: PolicySpec,

    /// Prints one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const WINDOWS: [(&str, WindowSet, &str); 2] = [
    ("training", WindowSet::Training, "For choosing a policy"),
    ("held-out", WindowSet::HeldOut, "For judging the chosen one"),
];
