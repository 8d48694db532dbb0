/**
 * The papers' own gains over TCP, on their machines and networks. References are figures and sections: the texts have
 * no page numbers.
 */
export interface PaperFigure {
  readonly paper: string
  readonly what: string
  readonly theirs: string
  readonly tcp: string
  /** Times as fast as TCP, from the numbers of the paper; absent where it has none of TCP. */
  readonly timesAsFast?: string
  readonly source: string
  /** The measurement here that comes nearest. */
  readonly here?: HereFigure
}

export interface HereFigure {
  readonly suite: string
  readonly metric: string
  readonly parameters: Readonly<Record<string, string | number>>
  /**
   * Of all results that have these parameters: the geometric mean of their ratios, or the ratio of the best to the
   * best.
   */
  readonly of?: 'mean' | 'peak'
}

const LARGE = 65_536
const smallRoundTrip: HereFigure = { suite: 'pingpong', metric: 'roundTrip', parameters: { size: 4 } }
const allRoundTrips: HereFigure = { suite: 'pingpong', metric: 'roundTrip', parameters: {}, of: 'mean' }
const peakStream: HereFigure = { suite: 'stream', metric: 'rate', parameters: {}, of: 'peak' }
const largeStream: HereFigure = { suite: 'stream', metric: 'rate', parameters: { size: LARGE } }
const app = (name: string, part: string, metric: string): HereFigure => {
  return { suite: 'apps', metric, parameters: { app: name, part } }
}

export const PAPER_FIGURES: readonly PaperFigure[] = [
  {
    paper: 'Fast Sockets 1997',
    what: 'throughput of large packets',
    theirs: 'within 10 % of raw Active Messages',
    tcp: 'not in the part that we have',
    source: 'section 3.5',
  },
  {
    paper: 'Sockets over VI 1999',
    what: '4 B round trip',
    theirs: '74.9 us',
    tcp: '219.1 us, same network',
    timesAsFast: '2.9',
    source: 'table 1',
    here: smallRoundTrip,
  },
  {
    paper: 'Sockets over VI 1999',
    what: '50 000 B one way',
    theirs: '697.3 Mbit/s',
    tcp: '211 Mbit/s, same network',
    timesAsFast: '3.3',
    source: 'table 1',
    here: largeStream,
  },
  {
    paper: 'Sockets over VI 1999',
    what: '4 B remote procedure call',
    theirs: '111.21 us',
    tcp: '297.1 us, same network',
    timesAsFast: '2.7',
    source: 'table 2',
    here: app('grpc', 'unary 64 B', 'roundTrip'),
  },
  {
    paper: 'WSDLite 2000',
    what: 'round trip, mean of all sizes',
    theirs: '67.9 % below WSDP',
    tcp: 'WSDP is 28.8 % above TCP',
    timesAsFast: '2.4',
    source: 'figure 4 and its text',
    here: allRoundTrips,
  },
  {
    paper: 'WSDLite 2000',
    what: 'peak bandwidth',
    theirs: 'about 72 MB/s',
    tcp: '30 to 35 MB/s',
    timesAsFast: '2.1 to 2.4',
    source: 'figure 5 and its text',
    here: peakStream,
  },
  {
    paper: 'Sockets over EMP 2002',
    what: '4 B latency, data streaming',
    theirs: '37 us',
    tcp: '120 us',
    timesAsFast: '3.2 (the paper: 3.4)',
    source: 'abstract; section 7.2, figure 13',
    here: smallRoundTrip,
  },
  {
    paper: 'Sockets over EMP 2002',
    what: 'peak bandwidth',
    theirs: '840 Mbit/s',
    tcp: '550 Mbit/s, buffers tuned',
    timesAsFast: '1.5',
    source: 'section 7.2, figure 13',
    here: peakStream,
  },
  {
    paper: 'Sockets over EMP 2002',
    what: 'ftp, files in memory',
    theirs: 'almost twice',
    tcp: '1',
    timesAsFast: 'almost 2',
    source: 'section 1; figure 14',
    here: app('ftp', 'download', 'rate'),
  },
  {
    paper: 'Sockets over EMP 2002',
    what: 'web server, a connection each',
    theirs: 'up to six times',
    tcp: '1',
    timesAsFast: 'up to 6',
    source: 'section 1; figure 15',
    here: app('http', 'connection each', 'rate'),
  },
  {
    paper: 'SDP on Windows 2006',
    what: '1 B latency, one way',
    theirs: '17.9 us',
    tcp: 'not measured in the paper',
    source: 'figure 8 and its text',
  },
  {
    paper: 'SDP on Windows 2006',
    what: 'bandwidth, one socket, 128 KB messages',
    theirs: '1224 MB/s',
    tcp: 'not measured in the paper',
    source: 'figure 6 and its text',
  },
]
