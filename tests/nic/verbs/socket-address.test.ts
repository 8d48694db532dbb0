/** Addresses of devices, as 16 bytes and as the C library takes them. */
import t from 'tap'
import { FAMILY_V4, FAMILY_V6 } from '../../../nic/verbs/manager-layout.ts'
import { isMapped, mappedAddress, socketAddress } from '../../../nic/verbs/socket-address.ts'

t.test('an address as 16 bytes', async t => {
  const cases: [address: string, bytes: string][] = [
    ['10.77.0.1', '00000000000000000000ffff0a4d0001'],
    ['255.255.255.255', '00000000000000000000ffffffffffff'],
    ['2001:db8::1', '20010db8000000000000000000000001'],
    ['2001:db8:1:2:3:4:5:6', '20010db8000100020003000400050006'],
    ['fd00::', 'fd000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['::', '00000000000000000000000000000000'],
    ['::ffff:10.77.0.1', '00000000000000000000ffff0a4d0001'],
  ]
  for (const [address, bytes] of cases) t.equal(mappedAddress(address).toString('hex'), bytes, address)
  t.ok(isMapped(mappedAddress('10.77.0.1')))
  t.notOk(isMapped(mappedAddress('2001:db8::1')))
})

t.test(
  'as the C library takes it: the family in the order of this machine, the rest in that of the network',
  async t => {
    const four = socketAddress(mappedAddress('10.77.0.1'), 0x1234)
    t.equal(four.readUInt16LE(0), FAMILY_V4)
    t.equal(four.toString('hex', 2, 8), '12340a4d0001')
    t.ok(four.subarray(8).every(byte => byte === 0))
    const six = socketAddress(mappedAddress('2001:db8::1'), 443)
    t.equal(six.readUInt16LE(0), FAMILY_V6)
    t.equal(six.toString('hex', 2, 24), '01bb0000000020010db8000000000000000000000001')
    t.ok(six.subarray(24).every(byte => byte === 0))
  },
)
