//! What a rank publishes about how to reach it.

use super::*;

/// What a rank publishes about how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Card {
    pub name: Name,
    pub pid: u32,
    pub node: Node,
}

impl Card {
    const MARK: &[u8; 4] = b"FMc2";

    pub fn encode(&self) -> Vec<u8> {
        let mut b = Card::MARK.to_vec();
        b.extend_from_slice(&self.name);
        b.extend_from_slice(&self.pid.to_le_bytes());
        b.extend_from_slice(&self.node.encode());
        b
    }

    pub(super) fn decode(b: &[u8]) -> Option<Card> {
        if b.len() < 16 || &b[..4] != Card::MARK {
            return None;
        }
        Some(Card {
            name: b[4..12].try_into().ok()?,
            pid: u32::from_le_bytes(b[12..16].try_into().ok()?),
            node: Node::decode(&b[16..])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_come_back_as_they_went() {
        let card = Card { name: *b"abcdefgh", pid: 77, node: Node::here().unwrap() };
        assert_eq!(Card::decode(&card.encode()).as_ref(), Some(&card));
        assert_eq!(Card::decode(&card.encode()[1..]), None);
        assert_eq!(Card::decode(b""), None);
    }
}
