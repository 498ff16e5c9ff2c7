"""Worlds for trials. python h.py SEEDS WORLD... ; prints regret per world (mean over seeds)."""
import sys, time, os, pickle
import numpy as np, coterie
from coterie.environments import Stochastic, Shifted, Bernoulli, lifted, Payoffs
from coterie.environments.blocks import BLOCK
from functools import lru_cache
D="/work/shared/data"
@lru_cache(None)
def syn(dim,u=1000): return coterie.datasets.load("synthetic", dim=dim, n_users=u, n_items=1000)
@lru_cache(None)
def ml(pool): 
    f=f"/tmp/exp_auto/ml{pool}.pkl"
    if os.path.exists(f): return pickle.load(open(f,"rb"))
    x=coterie.datasets.load("movielens", D+"/ml-latest-small/ratings.csv", dim=50, n_users=pool); pickle.dump(x,open(f,"wb")); return x
class Mod:
    def __init__(s, base, f): s.base,s.f=base,f
    def __getattr__(s,n):
        if n in("base","f"): raise AttributeError(n)
        return getattr(s.base,n)
    def block(s,n): return s.f(s.base.block(n),n,np.random.default_rng([s.base.seed,n,77]))
    @property
    def dim(s): return s.base.dim
class Arr:
    """own items/means table; all or K random arms"""
    longest_delay=0
    def __init__(s,items,means,labels,K,sigma,seed):
        s.items,s.means,s.labels,s.K,s.sigma,s.seed=np.ascontiguousarray(items),means,labels,K,sigma,seed; s.n_users,s.dim=len(means),items.shape[1]
    def present(s,n): return s.n_users
    def block(s,n):
        from coterie.environments.blocks import Block
        r=np.random.default_rng([s.seed,n,5]); u=r.integers(s.n_users,size=BLOCK)
        m=len(s.items)
        p=np.tile(np.arange(m),(BLOCK,1)) if s.K>=m else np.argsort(r.random((BLOCK,m)),axis=1)[:,:s.K]
        sg=s.sigma[u] if np.ndim(s.sigma) else s.sigma
        return Block(users=u,items=s.items,picks=np.ascontiguousarray(p),means=np.take_along_axis(s.means[u],p,1),noise=sg*r.normal(size=BLOCK),delays=np.zeros(BLOCK,np.int64),binary=False,lasting=True)
def base(s,**k): 
    a=dict(n_users=50,n_clusters=10,n_arms=100,noise=0.1,seed=s); dim=k.pop("dim",20); a.update(k)
    return Stochastic(syn(dim),**a)
def wild(sd,bad=(7,)):
    def f(b,n,r):
        w=np.isin(b.users,bad); m,z=b.means.copy(),b.noise.copy()
        m[w]=0; z[w]=sd*r.normal(size=w.sum()); return b._replace(means=m,noise=z)
    return lambda s: Mod(base(s),f)
def one(size,at):
    def f(b,n,r):
        if at//BLOCK!=n: return b
        z=b.noise.copy(); z[at%BLOCK]+=size; return b._replace(noise=z)
    return lambda s: Mod(base(s),f)
def noise(draw):
    return lambda s: Mod(base(s),lambda b,n,r: b._replace(noise=draw(b,r)))
def het(b,r):
    sg=np.where(np.arange(50)%5==0,1.0,0.05); return sg[b.users]*r.normal(size=len(b.users))
def onehot(sig,d=10,fixed=False):
    def g(s):
        r=np.random.default_rng(s+9000); lab=np.arange(50)%10
        items=np.eye(d) if not fixed else (lambda v:v/np.linalg.norm(v,axis=1)[:,None])(r.normal(size=(d if d>3 else 3,20 if d>3 else 5)))
        th=r.normal(size=(10,items.shape[1])); th/=np.linalg.norm(th,axis=1)[:,None]
        return Arr(items,th[lab]@items.T,lab,len(items),sig,s)
    return g
def scaled(c):
    def g(s):
        b=base(s); c_=np.asarray(c)
        it=np.ascontiguousarray(b.dataset.items*c_)
        m=b.preferences[b.labels]@b.dataset.items.T if np.ndim(c_) else b.preferences[b.labels]@it.T
        return Arr(it,m,b.labels,100,0.1,s)
    return g
def spec(**k):
    def g(s):
        a=dict(n_users=50,n_clusters=10,n_arms=100,noise=0.1,seed=s); d=k.get("data","syn"); a.update({x:y for x,y in k.items() if x!="data"})
        data = (syn(50,1000) if d=="syn" else ml(1000 if False else (500 if a["n_users"]==500 else 100)))
        if d=="bern": data=lifted(syn(50,1000)); a["noise"]=Bernoulli()
        return Stochastic(data,**a)
    return g
@lru_cache(None)
def pay(which):
    from coterie.datasets import load_payoffs
    return load_payoffs("lastfm",D+"/hetrec2011-lastfm-2k",setting="lastfm-2014",dim=25) if which=="lastfm" else load_payoffs("movielens",D+"/ml-latest-small/ratings.csv",setting="rated",dim=20)
def flip(frac):  # colluding: some users answer by -theta of user's own cluster
    def f(b,n,r):
        w=b.users<int(50*frac); m=b.means.copy(); m[w]*=-1; return b._replace(means=m)
    return lambda s: Mod(base(s),f)
W={
 "base":(base,20000),"wild2":(wild(2),20000),"wild5":(wild(5),20000),"wild10":(wild(10),20000),"wild1000":(wild(1000),20000),
 "wild.1":(wild(.1),20000),"wild.5":(wild(.5),20000),"wild1":(wild(1),20000),"wild10x5":(wild(10,(1,2,3,4,5)),20000),
 "one100":(one(100,1000),20000),"one1000":(one(1000,1000),20000),"one1e6@0":(one(1e6,0),20000),"one1000@20":(one(1000,20),20000),
 "het":(noise(het),20000),"cauchy":(noise(lambda b,r:np.clip(0.1*r.standard_cauchy(len(b.users)),-1000,1000)),20000),
 "cauchy10":(noise(lambda b,r:np.clip(0.1*r.standard_cauchy(len(b.users)),-10,10)),20000),
 "1%sd5":(noise(lambda b,r:np.where(r.random(len(b.users))<.01,5,.1)*r.normal(size=len(b.users))),20000),
 "hot.01":(onehot(.01),20000),"hot.03":(onehot(.03),20000),"hot.1":(onehot(.1),20000),
 "fix10":(onehot(.03,10,True),20000),"fix3":(onehot(.3,3,True),20000),
 "x.03":(scaled(np.full(20,.03)),20000),"x30":(scaled(np.full(20,30.)),20000),"cols":(lambda s: scaled(np.array(([1,10,100]*7)[:20],float))(s),20000),
 "one5":(lambda s:base(s,n_clusters=1,noise=1.0,n_arms=5),20000),"one":(lambda s:base(s,n_clusters=1),20000),
 "none200":(lambda s:base(s,n_users=200,n_clusters=200,dim=10),20000),"none50":(lambda s:base(s,n_clusters=50),20000),
 "none1000":(lambda s:base(s,n_users=1000,n_clusters=1000,dim=10),20000),
 "drift":(lambda s:base(s,drift=1.0),20000),
 "plus5":(lambda s:Shifted(base(s),5.0,intercept=False),20000),
 "syn":(spec(),20000),"syn.3":(spec(noise=.3),20000),"syn.03":(spec(noise=.03),20000),"synnone":(spec(n_clusters=50),20000),"synone":(spec(n_clusters=1),20000),
 "syn500":(spec(n_users=500,n_clusters=20,sizes="zipf",zipf=1.0),20000),"syn500L":(spec(n_users=500,n_clusters=20,sizes="zipf",zipf=1.0),100000),"bern":(spec(data="bern"),20000),
 "ml":(spec(data="ml"),20000),"ml.3":(spec(data="ml",noise=.3),20000),"ml.03":(spec(data="ml",noise=.03),20000),"mlnone":(spec(data="ml",n_clusters=50),20000),"mlone":(spec(data="ml",n_clusters=1),20000),
 "ml500":(spec(data="ml",n_users=500,n_clusters=20,sizes="zipf",zipf=1.0),20000),
 "lastfm":(lambda s:Payoffs(pay("lastfm"),n_arms=25,seed=s),30000),"rated":(lambda s:Payoffs(pay("ml"),n_users=500 if False else None,n_arms=10,seed=s),40000),
 "flip.02":(flip(.02),20000),"flip.2":(flip(.2),20000),
}
G={"A":"base wild2 wild5 wild10 wild1000 wild10x5 one100 one1000 one1e6@0 one1000@20 het cauchy cauchy10 1%sd5 flip.02 flip.2".split(),
   "B":"hot.01 hot.03 hot.1 fix10 fix3 x.03 x30 cols".split(),"O":"one5 one none200 none50 none1000 drift plus5".split(),
   "S":"syn syn.3 syn.03 synnone synone syn500 bern ml ml.3 ml.03 mlnone mlone ml500".split()}
def run(name,seed,make):
    f,T=W[name]; w=f(seed); p=make(w); t=time.process_time()
    tr=coterie.simulate(p,w,T,record=2); dt=time.process_time()-t
    v=tr.regret[-1] if name!="lastfm" else tr.reward[-1]
    return v, (np.nan if tr.ari is None else tr.ari[-1]), tr.clusters[-1] if hasattr(tr,"clusters") else 0, dt/T*1e6
if __name__=="__main__":
    P=sys.argv[1]; seeds=[int(x) for x in sys.argv[2].split(",")]; names=[]
    for n in sys.argv[3:]: names+=G.get(n,[n])
    mk={"auto":lambda w:coterie.AutoCLUB(w.present(0),w.dim),"auto.1":lambda w:coterie.AutoCLUB(w.present(0),w.dim,ridge=.1),"auto.01":lambda w:coterie.AutoCLUB(w.present(0),w.dim,ridge=.01),"hier":lambda w:coterie.HierUCB(w.present(0),w.dim),"hierts":lambda w:coterie.HierTS(w.present(0),w.dim),
        "ind":lambda w:coterie.LinUCBInd(w.present(0),w.dim,beta=.1)}[P]
    for n in names:
        r=np.array([run(n,s,mk) for s in seeds]); print(f"{P} {n:<11}"+" ".join(f"{v:8.0f}" for v in r[:,0])+f"  | {r[:,0].mean():8.1f} ari {r[:,1].mean():.2f} cl {r[:,2].mean():.0f} {r[:,3].mean():.0f}us",flush=True)
