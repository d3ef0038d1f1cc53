use super::*;

#[test]
fn addresses_are_ranked() {
    let gid = |bytes: [u8; 16], kind| GidKind::of(Gid(bytes), kind);
    let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1];
    let local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let global = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let order = [
        gid(v4, ffi::GID_ROCE_V2),
        gid(global, ffi::GID_ROCE_V2),
        gid(local, ffi::GID_ROCE_V2),
        gid(v4, ffi::GID_ROCE_V1),
    ];
    assert!(order.is_sorted() && order[0] == GidKind::V2Ipv4 && order[3] == GidKind::V1);
    let shown = Address { gid: Gid(v4), index: 1, kind: order[0] }.to_string();
    assert_eq!(shown, "gid 1 (10.9.0.1, RoCE v2, IPv4)");
}

#[test]
fn packet_sizes() {
    assert_eq!((1..=5).map(mtu_bytes).collect::<Vec<_>>(), [256, 512, 1024, 2048, 4096]);
    assert_eq!((mtu_code(4096), mtu_code(1500), mtu_code(10)), (5, 3, 1));
}

#[test]
fn without_devices_there_is_an_explanation() {
    match Port::choose(&Wishes::default(), 0) {
        Ok(port) => assert!(port.mtu >= 256),
        Err(e) => assert!(e.code() == Code::Unsupported && e.detail().contains("RDMA devices here"), "{e}"),
    }
}
