//! What this rank has found at init, in a line: for `FMPL_LOG=info`.

use super::*;
use crate::base::config::settings;
use crate::base::copying;

impl Endpoint {
    pub(super) fn found(&self, cores: usize, whence: &Whence) -> String {
        let nodes = self.launch.nodes();
        let here = self.launch.local_ranks().len();
        let crowded = if self.crowded { ", which they share" } else { "" };
        let tuning = match whence {
            Whence::BuiltIn => "built in".to_owned(),
            Whence::File(path) => path.display().to_string(),
        };
        let cma = if self.config.cma { "by the kernel where it allows it" } else { "not by the kernel" };
        let ordered =
            if self.region.header().is_reached() { "" } else { "; membarrier is refused: sleepers look by the clock" };
        let settings: Vec<String> = settings()
            .filter_map(|s| Some((s, std::env::var(s.name).ok()?)))
            .filter(|(s, value)| value != s.default)
            .map(|(s, value)| format!("{}={value}", s.name))
            .collect();
        format!(
            "{} ranks; node {} of {} ({}): {here} of them, {cores} cores{crowded}; between nodes: {}; copies: {cma}, loop {}; processor {}, \
             tuning {tuning}{ordered}; settings: {}",
            self.size,
            nodes.node_of(self.rank),
            nodes.nodes(),
            self.launch.node(),
            self.network(),
            copying::chosen().name(),
            self.tuning.processor,
            if settings.is_empty() { "all as by default".to_owned() } else { settings.join(" ") },
        )
    }

    /// By what other nodes are reached.
    fn network(&self) -> String {
        match self.fabric.get() {
            Some(fabric) if fabric.device().limits().is_driven => fabric.device().describe(),
            Some(fabric) => format!("RDMA by {}", fabric.device().describe()),
            None if self.has_other_nodes() => "nothing: FMPL_NETWORK=none".to_owned(),
            None => "no ranks elsewhere".to_owned(),
        }
    }
}
