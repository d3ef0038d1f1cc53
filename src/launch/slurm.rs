//! A plain `srun ./app`: Slurm says rank, size and nodes, and keeps no values. So the ranks meet at a root, rank 0, on the first node of the
//! step, at one of the ports that follow from the numbers of job and step; whose turn it is among jobs with the same ports the greeting says.
//!
//! The secret is drawn by rank 0 and stands in its greeting, sealed by munge, with which Slurm itself knows who is who: only processes of the
//! same user on machines with the same key of munge can read it, and they see who has sealed it. A greeting that somebody has recorded, and
//! plays back, seals a secret that he does not know. After it both sides prove that they know the secret, as in a job by variables.
//!
//! Where munge's socket is, and which address a node has whose name is not to be resolved, stands in Slurm's configuration, where that can
//! be read.

use super::environment::{Place, Root, Secret};
use super::{door, hosts};
use crate::base::config::Config;
use crate::base::error::{Code, Result, error};
use crate::base::key::{Key, random};
use crate::base::munge::Munge;
use crate::base::system;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// The ports that a step may take: below those that systems give away by themselves.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// How many of them are tried.
const TRIES: u64 = 8;

type Var<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The place of a task of a step that has several, and no PMI. `None`: this is none.
pub(crate) fn place(var: Var) -> Result<Option<Place>> {
    let number = |name: &str| var(name).and_then(|v| v.trim().parse::<u32>().ok());
    let (Some(rank), Some(size)) = (number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")) else { return Ok(None) };
    if size < 2 || rank >= size {
        return Ok(None);
    }
    let bad = |text: String| {
        error!(
            Code::Launch,
            "this is task {rank} of {size} of a plain Slurm step: {text}. `srun --mpi=pmix` or `srun --mpi=pmi2` starts it without, \
                 or set FMPL_ROOT and FMPL_SECRET; to run alone, unset SLURM_STEP_NUM_TASKS"
        )
    };
    let (job, step) = (var("SLURM_JOB_ID").unwrap_or_default(), var("SLURM_STEP_ID").unwrap_or_default());
    let conf = Conf::read(var);
    let name = format!("{job}.{step}");
    let seal = Seal::new(name.clone(), conf.munge()).map_err(|why| bad(format!("a secret needs munge, and {why}")))?;
    let nodes = var("SLURM_STEP_NODELIST").ok_or_else(|| bad("SLURM_STEP_NODELIST is not set".into()))?;
    let first = hosts::slurm_names(&nodes).map_err(bad)?.into_iter().next().unwrap_or_default();
    let ports = ports(&name);
    let mut listeners = None;
    if rank == 0 {
        let open = |port: &u16| door::listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), *port)).ok();
        let listener = ports.iter().find_map(open);
        listeners = Some(vec![listener.ok_or_else(|| bad(format!("somebody listens at all of the ports {ports:?}")))?]);
    }
    let alone = number("SLURM_STEP_NUM_NODES") == Some(1);
    let addresses = if alone { vec![Ipv4Addr::LOCALHOST.into()] } else { conf.addresses(&first).map_err(bad)? };
    let at = ports.iter().flat_map(|port| addresses.iter().map(move |ip| SocketAddr::new(*ip, *port))).collect();
    let config = Config::from_environment()?;
    Ok(Some(Place {
        rank,
        size,
        root: Root::At(at),
        secret: Secret::Sealed(seal),
        listeners,
        patience: Duration::from_secs_f64(config.start_s),
        log: config.log,
    }))
}

/// The ports of a step, in the order in which they are tried.
fn ports(name: &str) -> Vec<u16> {
    let word = Key::of(name.as_bytes()).derive("ports of a step", &[]).words()[0];
    (0..TRIES).map(|k| PORTS.start + (word.wrapping_add(k * 997) % PORTS.len() as u64) as u16).collect()
}

/// Slurm's configuration, or as much of it as is to be had.
struct Conf(String);

impl Conf {
    fn read(var: Var) -> Conf {
        let places = var("SLURM_CONF").into_iter();
        let usual = ["/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf"];
        let mut places = places.chain(usual.map(str::to_owned));
        Conf(places.find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_default())
    }

    /// The values of a key, in lines that begin with `head`. Names of keys may be written in any way.
    fn values<'a>(&'a self, head: &'a str, key: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.lines().filter_map(move |line| {
            let pairs = || line.split_whitespace().filter_map(|word| word.split_once('='));
            let (name, first) = pairs().next().filter(|(name, _)| name.eq_ignore_ascii_case(head))?;
            let _ = name;
            Some((first, pairs().find(|(name, _)| name.eq_ignore_ascii_case(key))?.1))
        })
    }

    /// Where munge listens, if not at its usual place.
    fn munge(&self) -> Option<&str> {
        let info = self.values("AuthInfo", "AuthInfo").next()?.1;
        info.split(',').find_map(|part| part.strip_prefix("socket="))
    }

    /// The addresses of a node, which has no port here.
    fn addresses(&self, node: &str) -> std::result::Result<Vec<IpAddr>, String> {
        let resolve = |name: &str| -> std::io::Result<Vec<IpAddr>> {
            Ok((name, 0).to_socket_addrs()?.map(|a| a.ip()).filter(IpAddr::is_ipv4).collect())
        };
        let given = self.values("NodeName", "NodeAddr").find_map(|(names, addresses)| {
            let at = hosts::slurm_names(names).ok()?.iter().position(|name| name == node)?;
            let all = hosts::slurm_names(addresses).ok()?;
            all.get(at).or_else(|| all.first().filter(|_| all.len() == 1)).cloned()
        });
        let name = given.as_deref().unwrap_or(node);
        match resolve(name) {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err(format!("{name}, its first node, has no address of IPv4")),
            Err(e) => Err(format!("the address of {name}, its first node: {e}")),
        }
    }
}

/// What seals a secret for this user's processes of a step, and opens it.
pub(crate) struct Seal {
    step: String,
    munge: Munge,
}

impl Seal {
    fn new(step: String, socket: Option<&str>) -> std::result::Result<Seal, String> {
        let munge = Munge::find(socket)?;
        // Each rank finds out by itself whether munge answers, and need not wait for a root that has failed.
        munge.seal(step.as_bytes())?;
        Ok(Seal { step, munge })
    }

    /// What it seals for.
    pub(crate) fn step(&self) -> &str {
        &self.step
    }

    /// A secret, and the same as only this user's processes can read it.
    pub(crate) fn draw(&self) -> Result<(Key, String)> {
        let bad = |why: String| {
            let with = "`srun --mpi=pmix` or `srun --mpi=pmi2` needs no secret of ours";
            error!(Code::Launch, "rank 0: munge does not seal the secret of the job: {why}; {with}")
        };
        let secret = random::<32>()?;
        let text = self.munge.seal(&[&secret, self.step.as_bytes()].concat()).map_err(bad)?;
        Ok((Key::of(&secret), text))
    }

    /// The secret of the step, in a greeting of its root.
    pub(crate) fn open(&self, text: &str) -> std::result::Result<Key, String> {
        let (bytes, user) =
            self.munge.open(text).map_err(|why| format!("munge cannot read the root's secret: {why}"))?;
        let (secret, step) = bytes.split_at_checked(32).ok_or("another job listens there")?;
        match () {
            () if user != system::user() => Err(format!("a job of user {user} listens there")),
            () if step != self.step.as_bytes() => Err("another job of this user listens there".into()),
            () => Ok(Key::of(secret)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations() {
        let conf = Conf(
            "AuthType=auth/munge\nauthinfo=ttl=60,socket=/run/m.socket\nNodeName=n[0-1] NodeHostname=h NodeAddr=127.0.0.1 CPUs=4\n\
             NodeName=m[01-02] NodeAddr=127.0.0.[8-9] State=UNKNOWN\n"
                .into(),
        );
        assert_eq!(conf.munge(), Some("/run/m.socket"));
        let of = |node: &str| conf.addresses(node).unwrap();
        let ip = |last: u8| vec![IpAddr::from([127, 0, 0, last])];
        assert_eq!((of("n1"), of("m01"), of("m02")), (ip(1), ip(8), ip(9)));
        assert_eq!(of("localhost"), ip(1));
        assert!(conf.addresses("no-such-node.invalid").unwrap_err().contains("no-such-node.invalid"));
        assert_eq!(Conf(String::new()).munge(), None);
    }

    #[test]
    fn steps_have_ports_of_their_own() {
        let (a, b) = (ports("7.0"), ports("7.1"));
        assert_ne!(a, b);
        assert!(a.len() == TRIES as usize && a.iter().all(|p| PORTS.contains(p)), "{a:?}");
    }

    #[test]
    fn what_is_no_step_of_several_is_left_alone() {
        for vars in [vec![], vec![("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")], vec![("SLURM_PROCID", "1")]] {
            let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert!(place(&var).unwrap().is_none());
        }
    }
}
